/**
 * The HTTP edge on one screen: the route table, and the steps of every request.
 *
 *   request id -> (404, 405) -> caller, rate, folder -> parameters -> body -> request slot -> answer
 */
import { strict as assert } from 'node:assert'
import { OpenAPIHono } from '@hono/zod-openapi'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { AppError } from '../errors.ts'
import { authenticate, authenticateAgain, identified } from './authenticate.ts'
import { readBody } from './body.ts'
import { answerError } from './errors.ts'
import { acceptRequestId } from './listener.ts'
import { queryError } from './query.ts'
import { addReferencePage, addSite } from './reference/site.ts'
import { requestSlot } from './request-slot.ts'
import type { Edge, FolderCall, Route } from './route.ts'
import { collectionRoutes } from './routes/collections.ts'
import { entry } from './routes/entry.ts'
import { addFileRoute } from './routes/files.ts'
import { fullExport, fullExportStatus } from './routes/full-export.ts'
import { keyInfo } from './routes/key-info.ts'
import { ledgerList } from './routes/ledgers/list.ts'
import { ledgerBlocks, ledgerChanges } from './routes/ledgers/many-ledgers.ts'
import { healthz, readyz } from './routes/probes.ts'
import { selectedRoutes } from './routes/selected.ts'
import { deliveryRoutes } from './routes/webhooks/deliveries.ts'
import { subscriptionEvents } from './routes/webhooks/events.ts'
import { subscriptionRoutes } from './routes/webhooks/subscriptions.ts'
import { describeRoute, openApiDocument, openApiRoute } from './schemas/openapi.ts'
import type { Services } from './services.ts'

/** The routes of the document. Files, the reference page and the site have further routes, without parameters. */
export const routes: readonly Route[] = [
  keyInfo(() => routes),
  ...selectedRoutes,
  entry,
  fullExport,
  fullExportStatus,
  ledgerList,
  ...collectionRoutes,
  ledgerChanges,
  ledgerBlocks,
  ...subscriptionRoutes,
  subscriptionEvents,
  ...deliveryRoutes,
  openApiRoute(() => document()),
  healthz,
  readyz,
]

let made: ReturnType<typeof openApiDocument> | undefined
/** Made when it is first requested: it would take a tenth of the processor time of a start. */
const document = () => (made ??= openApiDocument(routes))

export function createApp(services: Services, table = routes): OpenAPIHono<Edge> {
  const app = new OpenAPIHono<Edge>({
    defaultHook: (result, c) => {
      if (result.target !== 'query') return
      const url = c.env.incoming.url ?? ''
      const disagree = c.get('folderNamesDisagree') ?? false
      const error = queryError(url, disagree, result.success ? undefined : result.error)
      if (error) throw error
    },
  })
  app.onError((error, c) => answerError(error, c, services))
  app.notFound(() => {
    throw new AppError('ERR-NOT-FOUND')
  })
  app.use(acceptRequestId(services), endBodyOfHead)
  addFileRoute(app, services)
  addReferencePage(app, services)
  addSite(app)
  for (const { path } of table.filter((route) => route.starts)) app.use(path, refuseHead)
  for (const route of table) {
    if (route.deprecated) app.on(route.method, honoPath(route.path), announceEnd(route))
    app.openapi({ ...describeRoute(route), middleware: authenticate(route, services) }, (c) =>
      answer(route, c as Context<Edge>, services),
    )
  }
  for (const path of new Set(table.map((route) => route.path)))
    app.all(honoPath(path), () => {
      throw methodNotAllowed(path)
    })
  return app
}

/**
 * The app while the database is opened and, where needed, migrated: the process is up, but not ready.
 * @param doing what is being done, in the words of /readyz
 */
export function createOpeningApp(
  parts: Pick<Services, 'log' | 'telemetry'>,
  doing: () => string,
): Hono<Edge> {
  const app = new Hono<Edge>()
  app.onError((error, c) => answerError(error, c, parts))
  app.use(acceptRequestId({ ...parts, audit: { record: () => {} } }))
  app.get('/healthz', (c) => c.json({ status: 'up' }))
  app.all('*', ({ req }) => {
    throw new AppError('ERR-UNAVAILABLE', req.path === '/readyz' ? { message: `Not ready: ${doing()}` } : {})
  })
  return app
}

async function answer(route: Route, c: Context<Edge>, services: Services): Promise<Response> {
  const query: { wait?: number } = c.req.valid('query' as never)
  const call = { c, services, query: query as never, requestId: c.get('requestId') }
  if (route.scope === 'open') return route.answer(call)
  const parseBody = route.body && (await readBody(c, route.body.mediaTypes))
  if (route.atOnce) {
    const { name, most } = route.atOnce
    await requestSlot(services.requestSlots, name, identified(c).tokenId, c.env.outgoing, most).acquire()
  }
  const caller = { ...call, principal: identified(c), body: parseBody?.() }
  const facts = c.get('audited')
  if (facts) facts.selection = { ...(route.recorded?.(query as never) ?? query), ...c.req.param() }
  const { wait = 0 } = query
  const give = async () => {
    if (route.scope === 'token') return route.answer(caller)
    const folderId = c.get('folderId')!
    // A partner with a limit of its own also has its own slots, and leaves those of the folder to others.
    const own = c.get('rate')?.concurrent ?? undefined
    const holder = own === undefined ? folderId : `${folderId} of partner ${caller.principal.thirdPartyId}`
    const slot = requestSlot(services.requestSlots, route.path, holder, c.env.outgoing, own)
    if (wait === 0) await slot.acquire()
    return route.answer({ ...caller, folderId, slot } satisfies FolderCall<never>)
  }
  return wait > 0 ? giveIfStillAllowed(give, c, () => authenticateAgain(route, c, services)) : give()
}

/**
 * Gives the answer or the error of a request that waits, unless its caller is refused by now. The caller is looked up
 * after the state that the answer shows was fixed, so nothing that is committed after a revocation is sent.
 */
async function giveIfStillAllowed(
  give: () => Promise<Response>,
  c: Context<Edge>,
  check: () => Promise<void>,
): Promise<Response> {
  // Once `c.res` is read, Hono gives each answer a copy of the headers. So the refusal has none of the headers of the
  // dropped answer.
  assert(c.res)
  const [answer] = await Promise.allSettled([give()])
  try {
    await check()
  } catch (error) {
    if (answer.status === 'fulfilled') await answer.value.body?.cancel()
    throw error
  }
  if (answer.status === 'rejected') throw answer.reason
  return answer.value
}

const honoPath = (path: string) => path.replaceAll(/\{(\w+)\}/g, ':$1')

/** The longest six months have 184 days (docs/versions.md#notice). */
const noticeMs = 184 * 24 * 3_600_000

/** Announces the end of a route by RFC 9745 and RFC 8594, with links to the page of versions. */
function announceEnd({ path, deprecated }: Route): MiddlewareHandler<Edge> {
  const { since, sunset, parameter } = deprecated!
  assert(sunset === undefined || Date.parse(sunset) - Date.parse(since) >= noticeMs, `${path} goes too soon`)
  const link = (relation: string) => `</docs/versions.html>; rel="${relation}"; type="text/html"`
  return (c, next) => {
    if (parameter === undefined || c.req.query(parameter) !== undefined) {
      c.header('Deprecation', `@${Date.parse(since) / 1000}`)
      if (sunset) c.header('Sunset', new Date(sunset).toUTCString())
      c.header('Link', [link('deprecation'), sunset && link('sunset')].filter(Boolean).join(', '))
    }
    return next()
  }
}

function methodNotAllowed(path: string): AppError {
  const methods = routes
    .filter((route) => route.path === path)
    .flatMap(({ method, starts }) => (method === 'get' && !starts ? ['GET', 'HEAD'] : [method.toUpperCase()]))
  return new AppError('ERR-METHOD-NOT-ALLOWED', { headers: { Allow: methods.join(', ') } })
}

/**
 * For routes whose GET starts something. Hono passes HEAD to the GET route, and a 200 would announce an export that
 * does not exist.
 */
const refuseHead: MiddlewareHandler<Edge> = (c, next) => {
  if (c.req.method === 'HEAD') throw methodNotAllowed(c.req.path)
  return next()
}

/**
 * Ends the body of a HEAD request, which runs the GET route: an unread stream would keep its export running forever.
 */
const endBodyOfHead: MiddlewareHandler<Edge> = async (c, next) => {
  await next()
  if (c.req.method === 'HEAD') await c.res.body?.cancel()
}
