/** Starts the console, if CONSOLE_PORT is set. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { limits } from '../config.ts'
import type { DatabaseUrls } from '../db/database.ts'
import { createOwnerPool } from '../db/pool.ts'
import type { Services } from '../http/services.ts'
import type { RunningAttempts } from '../jobs/running-attempts.ts'
import { listen, urlOf } from '../listen.ts'
import type { Timing } from '../timing.ts'
import { checkOwner } from './access/owner.sql.ts'
import { createConsole } from './console-app.ts'
import { type LatestStanding, recordHistory } from './history.ts'
import { watchPages } from './live.ts'
import { exportRoutes } from './pages/exports.ts'
import { folderRoutes } from './pages/folders.ts'
import { partnerRoutes } from './pages/partners.ts'
import { processPage } from './pages/process.ts'
import { subscriptionRoutes } from './pages/subscriptions.ts'

/**
 * Time limit of a statement of the console. It usually takes some tenths of a second. Without a limit, a page would
 * look up to date while the database is silent.
 */
const answerMs = 10_000

/**
 * @returns the address, such as `http://127.0.0.1:9090/console`; undefined if CONSOLE_PORT is not set
 * @throws {Error} if the port cannot be opened, or the login of the database does not own the tables
 */
export async function startConsole(started: {
  services: Services
  urls: DatabaseUrls
  /** Whether the server cannot be reached: the login is then not checked. */
  isAway: boolean
  attempts: RunningAttempts
  standing: LatestStanding
  timing: Timing
}): Promise<{ url: string; close(): Promise<void> } | undefined> {
  const { services, attempts, timing } = started
  const address = services.config.console
  if (!address) return undefined
  await using stack = new AsyncDisposableStack()
  const owner = createOwnerPool(started.urls.ownerUrl, {
    max: limits.consoleConnectionsMax,
    applicationName: 'grandlivre console',
    answerMs,
  })
  stack.defer(() => owner.end())
  if (!started.isAway) await checkOwner(owner)
  const history = recordHistory({ ...started, streams: services.streams })
  stack.defer(() => history.close())
  const closing = new AbortController()
  const app = createConsole({
    services,
    owner,
    // In the order of the links in the header.
    routes: [
      ...exportRoutes(attempts),
      ...folderRoutes,
      ...partnerRoutes,
      ...subscriptionRoutes,
      processPage(history),
    ],
    watch: watchPages(closing.signal),
  })
  const server = createServer(
    {
      headersTimeout: timing.listener.headersMs,
      requestTimeout: timing.listener.requestMs,
      connectionsCheckingInterval: timing.listener.checkMs,
    },
    getRequestListener(app.fetch),
  )
  server.setTimeout(timing.listener.idleMs)
  const port = await listen(server, address, { port: 'CONSOLE_PORT', host: 'CONSOLE_HOST' })
  stack.defer(async () => {
    closing.abort()
    const closed = once(server, 'close')
    server.close()
    // Closes open streams, too: their pages then connect again.
    server.closeAllConnections()
    await closed
  })
  const url = `${urlOf(address.host, port)}/console`
  services.log('console.listening', { url })
  const running = stack.move()
  return { url, close: () => running.disposeAsync() }
}
