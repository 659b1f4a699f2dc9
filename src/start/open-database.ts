/**
 * The database of the service when it starts. One that is there is opened before anything else, and a start that would
 * not be safe ends with that. A server that cannot be reached is no mistake: it is asked again every second, and the
 * rest starts when it lets us in, is safe and fits. Until then no request is taken.
 */
import { addAbortListener } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../config.ts'
import { type Database, DatabaseAway, type DatabaseUrls, openDatabase, urlsOfServer } from '../db/database.ts'
import { isConnectionLoss } from '../db/outage.ts'
import type { Readiness } from '../http/readiness.ts'
import type { Log } from '../log.ts'

export type Opened = { urls: DatabaseUrls } & (
  | { database: Database; away?: undefined }
  | { database?: undefined; away: DatabaseAway }
)

/** @throws {Error} as `openDatabase`, but for a server that cannot be reached */
export async function openUnlessAway(config: Config): Promise<Opened> {
  try {
    const database = await openDatabase(config)
    return { database, urls: database }
  } catch (error) {
    if (!(error instanceof DatabaseAway) || config.databaseUrl === undefined) throw error
    return { away: error, urls: urlsOfServer(config.databaseUrl) }
  }
}

export interface Closable {
  close(): Promise<void>
}

export interface Waiting {
  config: Config
  away: DatabaseAway | undefined
  readiness: Readiness
  /** Between two tries. */
  pauseMs: number
  log: Log
  /** What needs the database. Tried again where it fails. */
  start: () => Promise<Closable>
}

/** How often the reason for waiting is logged. */
const reportMs = 10_000

/** @throws {Error} of `start`, where the database is not waited for */
export async function startWhenOpen(waiting: Waiting): Promise<Closable> {
  let { away }: { away?: unknown } = waiting
  if (away === undefined) {
    try {
      return await waiting.start()
    } catch (error) {
      // A server may go away after it was opened. The embedded one is ours to keep.
      if (waiting.config.databaseUrl === undefined || !isConnectionLoss(error)) throw error
      away = error
    }
  }
  const stopped = new AbortController()
  waiting.readiness.close(away)
  waiting.log('service.waiting', { error: away })
  const started = tryUntilOpen(waiting, stopped.signal)
  return {
    close: async () => {
      stopped.abort()
      await (await started)?.close()
    },
  }
}

async function tryUntilOpen(
  { config, readiness, pauseMs, log, start }: Waiting,
  stopped: AbortSignal,
): Promise<Closable | undefined> {
  let reported = performance.now()
  while (await passes(pauseMs, stopped)) {
    try {
      if (!(await opens(config, stopped))) return undefined
      const started = await start()
      readiness.open()
      return started
    } catch (error) {
      readiness.close(error)
      if (performance.now() - reported < reportMs) continue
      reported = performance.now()
      log('service.waiting', { error })
    }
  }
  return undefined
}

/** False where the process stops first: a migration may wait for another process for half a minute. */
async function opens(config: Config, stopped: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  using _heard = addAbortListener(stopped, () => resolve(false))
  return await Promise.race([openDatabase(config).then(() => true), promise])
}

/** False where the process stops first. */
function passes(ms: number, stopped: AbortSignal): Promise<boolean> {
  return delay(ms, true, { signal: stopped }).catch(() => false)
}
