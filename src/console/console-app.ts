/**
 * The console: the steps of every request, on one screen.
 *
 * headers -> host -> size -> assets -> origin of forms -> session -> token of the form -> page or act
 */
import { readFile } from 'node:fs/promises'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { Pool } from 'pg'
import type { Session } from '../auth/console-keys.sql.ts'
import { limits } from '../config.ts'
import type { Services } from '../http/services.ts'
import { isOurHost } from '../listen.ts'
import type { Log } from '../log.ts'
import { csrfOf, isCsrf, isOurOrigin, securityHeaders } from './access/guard.ts'
import { countAttempts, safeTarget, sessionOf, signIn, signInForm, signOut } from './access/sign-in.ts'
import { layout } from './layout.ts'
import type { Watch } from './live.ts'
import {
  type Action,
  type ConsoleEdge,
  type Html,
  type Page,
  type PageContext,
  Refusal,
  type Route,
} from './page.ts'
import { refusalOf, refusalPage } from './refusals.ts'

interface ConsoleParts {
  services: Services
  /** A pool that connects as the owner of the tables. */
  owner: Pool
  routes: readonly Route[]
  watch: Watch
}

type Visit = Context<ConsoleEdge>

export function createConsole(parts: ConsoleParts): Hono<ConsoleEdge> {
  const { routes, services } = parts
  const app = new Hono<ConsoleEdge>()
  app.onError((error, c) => answerError(error, c, services.log))
  app.notFound(() => {
    throw new Refusal(404, 'There is no such page.')
  })
  app.use(setHeaders, checkHost(services.config.console!.host), limitBody, checkOrigin)
  app.get('/', (c) => c.redirect('/console', 303))
  app.get('/console/assets/:name', readAsset).all(refuseOthersThan('GET, HEAD'))
  addSignIn(app, parts)
  for (const route of routes) {
    if ('render' in route) app.get(`/console${route.path}`, (c) => showPage(c, route, parts))
    else app.post(`/console${route.path}`, (c) => act(c, route, parts))
  }
  for (const [path, all] of Map.groupBy(routes, (route) => route.path)) {
    const methods = all.map((route) => ('render' in route ? 'GET, HEAD' : 'POST'))
    app.all(`/console${path}`, refuseOthersThan(methods.join(', ')))
  }
  return app
}

/** Refuses every method that the handlers of the path do not take. */
const refuseOthersThan = (methods: string) => () => {
  throw new Refusal(405, 'This address is not used with this method.', { Allow: methods })
}

const setHeaders: MiddlewareHandler = async (c, next) => {
  for (const [name, value] of Object.entries(securityHeaders)) c.header(name, value)
  await next()
}

function checkHost(own: string): MiddlewareHandler {
  return async (c, next) => {
    if (!isOurHost(c.req.header('host'), [own]))
      throw new Refusal(
        421,
        'The console is reached by a loopback name, an address, or the name of CONSOLE_HOST.',
      )
    await next()
  }
}

const limitBody = bodyLimit({
  maxSize: limits.bodyBytesMax,
  onError: () => {
    throw new Refusal(413, `A form has at most ${limits.bodyBytesMax} bytes.`, { Connection: 'close' })
  },
})

const checkOrigin: MiddlewareHandler = async (c, next) => {
  if (c.req.method === 'POST' && !isOurOrigin(c.req.header()))
    throw new Refusal(403, 'This form was not sent from a page of the console.')
  await next()
}

const assetTypes = new Map([
  ['console.css', 'text/css; charset=utf-8'],
  ['console.js', 'text/javascript; charset=utf-8'],
  ['icon.svg', 'image/svg+xml'],
])

async function readAsset(c: Visit): Promise<Response> {
  const name = c.req.param('name') ?? ''
  const type = assetTypes.get(name)
  if (type === undefined) throw new Refusal(404, 'There is no such file.')
  const bytes = await readFile(new URL(`assets/${name}`, import.meta.url))
  return c.body(bytes, 200, { 'Content-Type': type })
}

function addSignIn(app: Hono<ConsoleEdge>, { owner }: ConsoleParts): void {
  const attempts = countAttempts(Date.now)
  const formPage = (to: string, problem?: string) =>
    layout({ title: 'Sign in', main: signInForm(to, problem) })
  app.get('/console/sign-in', async (c) => c.html(await formPage(safeTarget(c.req.query('to') ?? null))))
  app.post(async (c) => {
    const form = await readForm(c)
    const to = safeTarget(form.get('to'))
    const session = await signIn(c, owner, attempts, form.get('key') ?? '')
    return session ? c.redirect(to, 303) : c.html(await formPage(to, 'This key is not in use.'), 401)
  })
  app.all(refuseOthersThan('GET, HEAD, POST'))
  app.post('/console/sign-out', async (c) => {
    const session = await requireSession(c, owner)
    checkToken(await readForm(c), session)
    await signOut(c, owner, session)
    return c.redirect('/console/sign-in', 303)
  })
  app.all(refuseOthersThan('POST'))
}

async function showPage(c: Visit, page: Page, parts: ConsoleParts): Promise<Response> {
  const session = await sessionOf(c, parts.owner)
  const wantsEvents = c.req.header('accept') === 'text/event-stream'
  if (!session && !wantsEvents) {
    const { pathname, search } = new URL(c.req.url)
    return c.redirect(`/console/sign-in?to=${encodeURIComponent(pathname + search)}`, 303)
  }
  if (!session) throw new Refusal(401, 'Sign in first.')
  const context = contextOf(c, session, parts)
  if (!wantsEvents) {
    const isLive = page.everyMs !== undefined
    return c.html(await document(parts, session, page, await page.render(context), isLive))
  }
  if (page.everyMs === undefined || c.req.method === 'HEAD')
    throw new Refusal(404, 'This page is not kept up to date.')
  const content = async () => {
    try {
      const main = String(await page.render(context))
      // The session is checked last, so that nothing that happened after its end is shown.
      return (await sessionOf(c, parts.owner)) ? main : undefined
    } catch (error) {
      parts.services.log('console.failed', { path: c.req.path, error })
      return undefined
    }
  }
  return parts.watch(c, content, page.everyMs)
}

async function act(c: Visit, action: Action, parts: ConsoleParts): Promise<Response> {
  const session = await requireSession(c, parts.owner)
  const form = await readForm(c)
  checkToken(form, session)
  const acted = await action.run(contextOf(c, session, parts), form)
  if ('seeOther' in acted) return c.redirect(`/console${acted.seeOther}`, 303)
  return c.html(await document(parts, session, { ...action, title: acted.title }, acted.main, false))
}

function document(
  { routes }: ConsoleParts,
  { name, token }: Session,
  { title, path }: Pick<Page, 'title' | 'path'>,
  main: Html | Awaited<Html>,
  isLive: boolean,
): Html {
  const pages = routes.filter((route) => 'render' in route)
  return layout({ title, main, signedIn: { name, csrf: csrfOf(token), pages, path }, isLive })
}

function contextOf(c: Visit, { name, token }: Session, { services, owner }: ConsoleParts): PageContext {
  const { pathname, searchParams: query } = new URL(c.req.url)
  return {
    services,
    owner,
    staff: `console ${name}`,
    csrf: csrfOf(token),
    params: c.req.param(),
    query,
    path: pathname.replace('/console', ''),
  }
}

async function requireSession(c: Visit, owner: Pool): Promise<Session> {
  const session = await sessionOf(c, owner)
  if (!session) throw new Refusal(401, 'Your session has ended: sign in again.')
  return session
}

async function readForm(c: Visit): Promise<URLSearchParams> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(c.req.header('content-type') ?? ''))
    throw new Refusal(415, 'A form has the content type application/x-www-form-urlencoded.')
  return new URLSearchParams(await c.req.text())
}

function checkToken(form: URLSearchParams, session: Session): void {
  if (!isCsrf(form.get('csrf'), session.token))
    throw new Refusal(403, 'This form belongs to another session: go back, reload the page and try again.')
}

async function answerError(error: Error, c: Visit, log: Log): Promise<Response> {
  const refusal = refusalOf(error, c.req.method)
  if (refusal.status >= 500) log('console.failed', { path: c.req.path, error })
  for (const [name, value] of Object.entries(refusal.headers)) c.header(name, value)
  return c.html(await refusalPage(refusal, c.req.method), refusal.status)
}
