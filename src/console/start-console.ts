/** Starts the console, if CONSOLE_PORT is set. */
import { limits } from '../config.ts'
import type { DatabaseUrls } from '../db/database.ts'
import { createOwnerPool } from '../db/pool.ts'
import type { Services } from '../http/services.ts'
import type { RunningAttempts } from '../jobs/running-attempts.ts'
import type { Timing } from '../timing.ts'
import { checkOwner } from './access/owner.sql.ts'
import { createConsole } from './console-app.ts'
import { History, type LatestStanding } from './history/history.ts'
import { type Listening, listenForStaff } from './listener.ts'
import { Viewers } from './live.ts'
import { pagesOf } from './pages.ts'

/**
 * How long a statement of the console may take; each takes some tenths of a second at most. Otherwise a page would look up to date while the
 * database is silent.
 */
const answerMs = 10_000

export interface ConsoleNeeds {
  services: Services
  urls: DatabaseUrls
  /** The server cannot be reached, so the login is not checked. */
  isAway: boolean
  attempts: RunningAttempts
  standing: LatestStanding
  timing: Timing
}

/**
 * @returns `http://127.0.0.1:9090/console`, say; undefined if CONSOLE_PORT is not set
 * @throws {Error} if the port cannot be opened, or the login of the database does not own the tables
 */
export async function startConsole(needs: ConsoleNeeds): Promise<Listening | undefined> {
  const { services, urls, attempts, standing, timing } = needs
  const address = services.config.console
  if (!address) return undefined
  await using stack = new AsyncDisposableStack()
  const owner = createOwnerPool(urls.ownerUrl, {
    max: limits.consoleConnectionsMax,
    applicationName: 'grandlivre console',
    answerMs,
  })
  stack.defer(() => owner.end())
  if (!needs.isAway) await checkOwner(owner)
  const history = new History({ streams: services.streams, attempts, standing })
  stack.defer(() => history.close())
  const closing = new AbortController()
  const viewers = new Viewers(closing.signal)
  const app = createConsole({
    services,
    owner,
    ...pagesOf(attempts, history),
    viewers,
    host: address.host,
    now: Date.now,
  })
  const { url, close } = await listenForStaff(app.fetch, address, timing.listener)
  stack.defer(async () => {
    closing.abort()
    await close()
  })
  services.log('console.listening', { url: `${url}/console` })
  const started = stack.move()
  return { url: `${url}/console`, close: () => started.disposeAsync() }
}
