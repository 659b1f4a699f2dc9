/**
 * Who is calling, and for which folder: decisions only, from headers and facts, in the order of the contract. Each
 * check has a code of its own, so that a partner can tell what to mend.
 */
import { strict as assert } from 'node:assert'
import { isId, readId } from '../db/id.ts'
import { AppError } from '../errors.ts'
import type { Authentication, CallerFacts, RateWindow } from './callers.sql.ts'
import type { Level } from './secrets.ts'

/** A caller whose token and secret belong together. Ids are decimal digits. */
export interface Principal {
  schemaId: string
  thirdPartyId: string
  kind: 'partner' | 'customer'
  tokenId: string
  level: Level
  firmId: string
  /** The folder of a company token; null for a firm token, which names one with each request. */
  folderId: string | null
}

/** A caller whose token is known, and counted. */
export interface KnownCaller {
  caller: CallerFacts
  window: RateWindow
}

export interface Credentials {
  token: string
  secret: string
}

/**
 * Checks 1 and 2: the headers are there.
 * @throws {AppError} ERR-INVALID-AUTH-HEADER, ERR-SECRET-HEADER-NOT-SET
 */
export function readCredentials(authorization: string | undefined, secret: string | undefined): Credentials {
  const token = /^Bearer +([\w.~+/-]+=*) *$/i.exec(authorization ?? '')?.[1]
  if (token === undefined) throw new AppError('ERR-INVALID-AUTH-HEADER')
  if (!secret?.trim()) throw new AppError('ERR-SECRET-HEADER-NOT-SET')
  return { token, secret: secret.trim() }
}

/**
 * Checks 3 and 4: the secret is some third party's, and the token is that third party's.
 * @throws {AppError} ERR-INVALID-SECRET, ERR-API-TOKEN-NOT-FOUND, ERR-FIRM-TOKEN-NOT-FOUND
 */
export function knownCaller(
  credentials: Credentials,
  authentication: Authentication | undefined,
): KnownCaller {
  if (!authentication) throw new AppError('ERR-INVALID-SECRET')
  const { caller, window } = authentication
  if (window) return { caller, window }
  throw new AppError(
    credentials.token.startsWith('glv_firm_') ? 'ERR-FIRM-TOKEN-NOT-FOUND' : 'ERR-API-TOKEN-NOT-FOUND',
  )
}

/** Whom a route is open to. */
export interface RouteAccess {
  /** Levels of token. */
  levels: readonly Level[]
  /** Closed to third parties of kind customer that come with a firm token. */
  closedToFirmCustomers?: boolean
}

/** What a caller of this level and kind is told; undefined where the route is open to it. */
export function refusalOf(
  { level, kind }: Pick<Principal, 'level' | 'kind'>,
  { levels, closedToFirmCustomers = false }: RouteAccess,
): AppError | undefined {
  if (!levels.includes(level)) return new AppError('ERR-FORBIDDEN-ROUTE')
  if (closedToFirmCustomers && level === 'firm' && kind === 'customer')
    return new AppError('ERR-FORBIDDEN-ACCESS', {
      message: 'This route is not open to customers with firm access',
    })
  return undefined
}

/**
 * Checks 5 to 7: this caller may use this route now.
 * @throws {AppError} ERR-THIRD-PARTY-DISCONNECTED, ERR-FORBIDDEN-ROUTE, ERR-FORBIDDEN-ACCESS,
 *   ERR-API-UNDER-MAINTENANCE
 */
export function authorize(caller: CallerFacts, routeAccess: RouteAccess): Principal {
  const { token, kind } = caller
  assert(token, 'a caller is admitted once its token is known')
  if (caller.disconnectedReason !== null)
    throw new AppError('ERR-THIRD-PARTY-DISCONNECTED', {
      message: `The third party was disconnected: ${caller.disconnectedReason}`,
    })
  const refusal = refusalOf({ level: token.level, kind }, routeAccess)
  if (refusal) throw refusal
  if (caller.underMaintenance)
    throw new AppError('ERR-API-UNDER-MAINTENANCE', { headers: { 'Retry-After': '60' } })
  return {
    schemaId: token.schemaId,
    thirdPartyId: caller.thirdPartyId,
    kind,
    tokenId: token.id,
    level: token.level,
    firmId: token.firmId,
    folderId: token.folderId,
  }
}

/** What a request says about its folder. Ids are decimal digits without leading zeros. */
export interface FolderNames {
  /** The header, as it was sent. */
  societyId: string | undefined
  /** The query parameter; `malformed` is left to the validation of the query, which reports it with the rest. */
  accountingFolderId: string | 'malformed' | undefined
}

/** Whether header and parameter name two folders: left to the validation of the query, as what is malformed. */
export function namesDisagree(names: FolderNames): boolean {
  const header = headerOf(names)
  const { accountingFolderId } = names
  if (header === undefined || accountingFolderId === undefined) return false
  return accountingFolderId !== 'malformed' && accountingFolderId !== header
}

/** An empty header names nothing; what is no id is left as it is. */
function headerOf({ societyId }: FolderNames): string | undefined {
  const given = societyId?.trim() ?? ''
  return readId(given) ?? (given || undefined)
}

/**
 * The folder that a request is about. For a firm token the caller still has to find out whether it is the firm's.
 * @returns undefined only where the parameter that should name it is malformed
 * @throws {AppError} ERR-FORBIDDEN-ACCESS, ERR-SOCIETY-ID-REQUIRED, ERR-FOLDER-NOT-FOUND where the header is no id
 */
export function folderOf(principal: Principal, names: FolderNames): string | undefined {
  const own = principal.folderId
  const isMalformed = names.accountingFolderId === 'malformed'
  const named = headerOf(names) ?? (isMalformed ? undefined : names.accountingFolderId)
  if (own !== null && named !== undefined && named !== own) throw new AppError('ERR-FORBIDDEN-ACCESS')
  // What cannot be an id is nobody's folder.
  if (own === null && named !== undefined && !isId(named)) throw new AppError('ERR-FOLDER-NOT-FOUND')
  if (own === null && named === undefined && !isMalformed) throw new AppError('ERR-SOCIETY-ID-REQUIRED')
  return named ?? own ?? undefined
}
