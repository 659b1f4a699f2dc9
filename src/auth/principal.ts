/**
 * Decides who is calling and for which folder, from headers and database facts, in the order of
 * docs/spec/interface.md#authentication. Each check has its own error code, so that a partner knows what to fix.
 */
import { isId, readId } from '../db/literal.ts'
import { AppError } from '../errors.ts'
import type { CallerFacts, KnownCaller, TokenGroup } from './callers.sql.ts'
import type { Level } from './secrets.ts'

/** An authenticated caller, which may use the service now. */
export type Principal = Omit<KnownCaller, 'disconnectedReason' | 'underMaintenance'>

/**
 * Checks 1 and 2: both headers are present.
 * @throws {AppError} ERR-INVALID-AUTH-HEADER, ERR-SECRET-HEADER-NOT-SET
 */
export function readCredentials(authorization: string | undefined, secret: string | undefined) {
  const token = /^Bearer +([\w.~+/-]+=*) *$/i.exec(authorization ?? '')?.[1]
  if (token === undefined) throw new AppError('ERR-INVALID-AUTH-HEADER')
  if (!secret?.trim()) throw new AppError('ERR-SECRET-HEADER-NOT-SET')
  return { token, secret: secret.trim() }
}

/**
 * Checks 3 and 4: the secret belongs to a third party, and the token to the same one.
 * @throws {AppError} ERR-INVALID-SECRET, ERR-API-TOKEN-NOT-FOUND, ERR-FIRM-TOKEN-NOT-FOUND
 */
export function knownCaller({ token }: { token: string }, caller: CallerFacts | undefined): KnownCaller {
  if (!caller) throw new AppError('ERR-INVALID-SECRET')
  if (caller.tokenId !== null) return caller
  throw new AppError(token.startsWith('glv_firm_') ? 'ERR-FIRM-TOKEN-NOT-FOUND' : 'ERR-API-TOKEN-NOT-FOUND')
}

/** Whether answers to this caller have the personal data of employees. */
export const opensEmployees = ({ groups }: Pick<Principal, 'groups'>): boolean =>
  groups === null || groups.includes('employees')

/** Which callers may use a route. */
export interface RouteAccess {
  /** Token levels. */
  levels: readonly Level[]
  /** A token needs all of them. */
  groups: readonly TokenGroup[]
  /** Closed to third parties of kind customer that use a firm token. */
  closedToFirmCustomers?: boolean
}

/** Returns the error to answer this caller with, or undefined if it may use the route. */
export function refusalOf(
  { level, kind, groups }: Pick<Principal, 'level' | 'kind' | 'groups'>,
  { levels, groups: needed, closedToFirmCustomers = false }: RouteAccess,
): AppError | undefined {
  if (!levels.includes(level)) return new AppError('ERR-FORBIDDEN-ROUTE')
  const missing = groups === null ? [] : needed.filter((group) => !groups.includes(group))
  if (missing.length > 0)
    return new AppError('ERR-FORBIDDEN-ROUTE', {
      message: `This token was issued without the ${missing.length > 1 ? 'groups' : 'group'} ${missing.join(' and ')}, which this route needs`,
    })
  if (closedToFirmCustomers && level === 'firm' && kind === 'customer')
    return new AppError('ERR-FORBIDDEN-ACCESS', {
      message: 'This route is closed to customers with firm access',
    })
  return undefined
}

/**
 * Checks 5 to 8: this caller may use this route now.
 * @throws {AppError} ERR-THIRD-PARTY-DISCONNECTED, ERR-FORBIDDEN-ROUTE, ERR-FORBIDDEN-ACCESS, ERR-API-UNDER-MAINTENANCE
 */
export function authorize(caller: KnownCaller, routeAccess: RouteAccess): Principal {
  const { disconnectedReason, underMaintenance, ...principal } = caller
  if (disconnectedReason !== null)
    throw new AppError('ERR-THIRD-PARTY-DISCONNECTED', {
      message: `The third party was disconnected: ${disconnectedReason}`,
    })
  const refusal = refusalOf(principal, routeAccess)
  if (refusal) throw refusal
  if (underMaintenance) throw new AppError('ERR-API-UNDER-MAINTENANCE', { headers: { 'Retry-After': '60' } })
  return principal
}

/** How a request names its folder. Ids are decimal digits without leading zeros. */
interface FolderNames {
  /** Value of the header society-id, as sent. */
  societyId: string | undefined
  /**
   * Value of the query parameter. If it is `malformed`, the validation of the query reports that with its other errors.
   */
  accountingFolderId: string | 'malformed' | undefined
}

/**
 * Whether header and parameter name two different folders. The validation of the query reports that, as well as a
 * malformed parameter.
 */
export function namesDisagree(names: FolderNames): boolean {
  const header = headerOf(names)
  const { accountingFolderId } = names
  if (header === undefined || accountingFolderId === undefined) return false
  return accountingFolderId !== 'malformed' && accountingFolderId !== header
}

/** Returns the id in the header, or undefined if the header is empty. Text that is not an id is returned unchanged. */
function headerOf({ societyId }: FolderNames): string | undefined {
  const given = societyId?.trim() ?? ''
  return readId(given) ?? (given || undefined)
}

/**
 * Returns the folder of a request. If the caller has a firm token, the calling code must still check that the folder
 * belongs to the firm.
 * @returns undefined only if the parameter that should name the folder is malformed
 * @throws {AppError} ERR-FORBIDDEN-ACCESS, ERR-SOCIETY-ID-REQUIRED, ERR-FOLDER-NOT-FOUND if the header is not an id
 */
export function folderOf(principal: Principal, names: FolderNames): string | undefined {
  const own = principal.folderId
  const isMalformed = names.accountingFolderId === 'malformed'
  const named = headerOf(names) ?? (isMalformed ? undefined : names.accountingFolderId)
  if (own !== null && named !== undefined && named !== own) throw new AppError('ERR-FORBIDDEN-ACCESS')
  // Text that is not an id matches no folder.
  if (own === null && named !== undefined && !isId(named)) throw new AppError('ERR-FOLDER-NOT-FOUND')
  if (own === null && named === undefined && !isMalformed) throw new AppError('ERR-SOCIETY-ID-REQUIRED')
  return named ?? own ?? undefined
}
