import { strict as assert } from 'node:assert'
import type { Context, MiddlewareHandler } from 'hono'
import type { AnswerFacts } from '../audit/audit-trail.ts'
import {
  authenticateCaller,
  findCaller,
  isFolderOfFirm,
  type RateWindow,
  uncountRequest,
} from '../auth/callers.sql.ts'
import {
  authorize,
  folderOf,
  knownCaller,
  namesDisagree,
  type Principal,
  readCredentials,
} from '../auth/principal.ts'
import { sha256 } from '../auth/secrets.ts'
import { AppError } from '../errors.ts'
import { readAccountingFolderId } from './query.ts'
import type { Edge, Route } from './route.ts'
import type { Services } from './services.ts'

/**
 * Identifies the caller, applies the rate limit and finds the folder. Runs before the parameters are checked, and only
 * while the database is open. Sets `principal`, `folderId` if the request concerns a folder, and the rate limit headers
 * on every answer, errors included.
 */
export function authenticate(route: Route, services: Services): MiddlewareHandler<Edge> {
  return async (c, next) => {
    if (route.scope !== 'open') {
      services.readiness.requireOpen()
      const { credentials, hashes } = credentialsOf(c)
      const { database, config } = services
      const authentication = await authenticateCaller(database, ...hashes, config.rateLimit)
      const caller = knownCaller(credentials, authentication?.caller)
      const { window } = authentication!
      c.set('rate', window)
      showRate(c, window)
      // Requests beyond the limit are not audited, so that a flood cannot fill the audit.
      const { thirdPartyId, tokenId, schemaId } = caller
      if (window.requests <= window.most)
        c.set('audited', { thirdPartyId, tokenId, schemaId, route: route.path, selection: {} })
      const principal = authorize(caller, route)
      c.set('principal', principal)
      if (window.requests > window.most) throw tooMany(window)
      c.set('folderId', await findFolder(c, route, services, principal))
    }
    await next()
  }
}

/**
 * Checks the caller of a request again, without counting the request. In the meantime its token may have been revoked,
 * its third party disconnected, or its folder may have left the firm.
 * @throws {AppError} as `authenticate`
 */
export async function authenticateAgain(route: Route, c: Context<Edge>, services: Services): Promise<void> {
  const { credentials, hashes } = credentialsOf(c)
  const caller = knownCaller(credentials, await findCaller(services.database, ...hashes))
  await findFolder(c, route, services, authorize(caller, route))
}

function credentialsOf(c: Context<Edge>) {
  const credentials = readCredentials(c.req.header('authorization'), c.req.header('x-third-party-secret'))
  return { credentials, hashes: [sha256(credentials.secret), sha256(credentials.token)] as const }
}

/** Subtracts a request that was held from the rate of its token, unless its rate window is over by now. */
export async function takeBackFromRate(c: Context<Edge>, services: Services): Promise<void> {
  const window = c.get('rate')
  assert(window, 'a route with levels counts its requests')
  const requests = await uncountRequest(services.database, identified(c), window.startedAt)
  if (requests !== null) showRate(c, { ...window, requests })
}

/** The principal of a call that went through `authenticate`. */
export function identified(c: Context<Edge>): Principal {
  const principal = c.get('principal')
  assert(principal, 'a route with levels is authenticated')
  return principal
}

/** Notes what an answer shows, for the audit. */
export function noteFacts(c: Context<Edge>, facts: Partial<AnswerFacts>): void {
  Object.assign(c.get('audited') ?? {}, facts)
}

function showRate(c: Context<Edge>, window: RateWindow): void {
  c.header('X-Rate-Limit-Total', String(window.most))
  c.header('X-Rate-Limit-Remaining', String(Math.max(0, window.most - window.requests)))
  c.header('X-Rate-Limit-Reset', String(window.resetAt))
}

function tooMany(window: RateWindow): AppError {
  const seconds = Math.max(1, Math.ceil(window.resetInMs / 1000))
  return new AppError('ERR-TOO-MANY-REQUEST', { headers: { 'Retry-After': String(seconds) } })
}

/** A route that concerns no folder needs no folder id; if a header contains one anyway, it must be valid. */
async function findFolder(
  c: Context<Edge>,
  route: Route,
  services: Services,
  principal: Principal,
): Promise<string | undefined> {
  const societyId = c.req.header('society-id')
  const accountingFolderId =
    'accountingFolderId' in route.query.shape
      ? readAccountingFolderId(c.req.queries('accountingFolderId'))
      : undefined
  const names = { societyId, accountingFolderId }
  if (route.scope !== 'folder' && !societyId?.trim() && accountingFolderId === undefined)
    return principal.folderId ?? undefined
  c.set('folderNamesDisagree', namesDisagree(names))
  const folderId = folderOf(principal, names)
  if (folderId === undefined || folderId === principal.folderId) return folderId
  if (!(await isFolderOfFirm(services.database, principal, folderId)))
    throw new AppError('ERR-FOLDER-NOT-FOUND')
  return folderId
}
