import { strict as assert } from 'node:assert'
import type { Context, MiddlewareHandler } from 'hono'
import { authenticateCaller, type RateWindow } from '../auth/callers.sql.ts'
import {
  authorize,
  folderOf,
  knownCaller,
  namesDisagree,
  type Principal,
  readCredentials,
} from '../auth/principal.ts'
import { sha256 } from '../auth/secrets.ts'
import { isFolderOfFirm } from '../auth/tokens.sql.ts'
import { AppError } from '../errors.ts'
import { readAccountingFolderId } from './query.ts'
import type { Edge, Route } from './route.ts'
import type { Services } from './services.ts'

/**
 * Who is calling, how often, and for which folder; runs before the parameters are looked at, once the database is there.
 * Sets `principal`, and `folderId` where a folder is concerned, and the rate limit's headers on whatever is answered.
 */
export function authenticate(route: Route, services: Services): MiddlewareHandler<Edge> {
  return async (c, next) => {
    if (route.scope !== 'open') {
      services.readiness.requireOpen()
      const credentials = readCredentials(c.req.header('authorization'), c.req.header('x-third-party-secret'))
      const authentication = await authenticateCaller(
        services.database,
        sha256(credentials.secret),
        sha256(credentials.token),
        services.config.rateLimit.windowMs,
      )
      const { caller, window } = knownCaller(credentials, authentication)
      showRate(c, window, services.config.rateLimit.requests)
      const principal = authorize(caller, route)
      c.set('principal', principal)
      if (window.requests > services.config.rateLimit.requests) throw tooMany(window)
      c.set('folderId', await findFolder(c, route, services, principal))
    }
    await next()
  }
}

/** The principal of a call that went through `authenticate`. */
export function identified(c: Context<Edge>): Principal {
  const principal = c.get('principal')
  assert(principal, 'a route with levels is authenticated')
  return principal
}

function showRate(c: Context<Edge>, window: RateWindow, total: number): void {
  c.header('X-Rate-Limit-Total', String(total))
  c.header('X-Rate-Limit-Remaining', String(Math.max(0, total - window.requests)))
  c.header('X-Rate-Limit-Reset', String(window.resetAt))
}

function tooMany(window: RateWindow): AppError {
  const seconds = Math.max(1, Math.ceil(window.resetInMs / 1000))
  return new AppError('ERR-TOO-MANY-REQUEST', { headers: { 'Retry-After': String(seconds) } })
}

/** A route that concerns no folder needs none named; where a header names one all the same, it has to be right. */
async function findFolder(
  c: Context<Edge>,
  route: Route,
  services: Services,
  principal: Principal,
): Promise<string | undefined> {
  const societyId = c.req.header('society-id')
  if (route.scope !== 'folder' && !societyId?.trim()) return principal.folderId ?? undefined
  const accountingFolderId =
    'accountingFolderId' in route.query.shape
      ? readAccountingFolderId(c.req.queries('accountingFolderId'))
      : undefined
  const names = { societyId, accountingFolderId }
  c.set('folderNamesDisagree', namesDisagree(names))
  const folderId = folderOf(principal, names)
  if (folderId === undefined || folderId === principal.folderId) return folderId
  if (!(await isFolderOfFirm(services.database, principal, folderId)))
    throw new AppError('ERR-FOLDER-NOT-FOUND')
  return folderId
}
