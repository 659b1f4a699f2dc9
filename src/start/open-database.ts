/**
 * Opens the database when the service starts, before anything else. An unsafe or unsuitable database ends the start.
 *
 * An unreachable server does not end the start. The service polls it every second, and starts the rest once the server
 * accepts connections, is safe and fits. Until then it accepts no requests.
 */
import { addAbortListener } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../config.ts'
import {
  type Database,
  type DatabaseUrls,
  type Opening,
  openDatabaseOfService,
  urlsOfServer,
} from '../db/database.ts'
import type { OnStep } from '../db/migrations/migrate.ts'
import { DatabaseAway, isAway } from '../db/outage.ts'
import type { Readiness } from '../http/readiness.ts'
import type { Log } from '../log.ts'

/** Which step of opening the database runs, for the log and for probes. */
export function openingSteps(log: Log) {
  let current: { doing: string; began: number } | undefined
  const onStep: OnStep = (doing, file) => {
    const step = { doing, began: performance.now() }
    current = step
    if (file === undefined) log('database.waiting', { doing })
    else log('migration.began', { doing, file })
    return () => {
      current = undefined
      const ms = Math.round(performance.now() - step.began)
      if (file !== undefined) log('migration.ended', { doing, file, ms })
    }
  }
  /** What the start is doing, such as `migrating, step 3 of 7, 12 s`; undefined between two steps. */
  const doing = (): string | undefined =>
    current && `${current.doing}, ${Math.floor((performance.now() - current.began) / 1_000)} s`
  return { onStep, doing }
}

/** @throws {Error} as `openDatabaseOfService` does. If the server is unreachable, it throws nothing: `away` says why */
export async function openUnlessAway(
  config: Config,
  opening: Opening,
): Promise<{ urls: DatabaseUrls; database?: Database; away?: DatabaseAway }> {
  try {
    const database = await openDatabaseOfService(config, opening)
    return { database, urls: database }
  } catch (error) {
    const urls = urlsOfServer(config)
    if (!(error instanceof DatabaseAway) || urls === undefined) throw error
    return { away: error, urls }
  }
}

interface Closable {
  close(): Promise<void>
}

interface StartWhenOpen {
  config: Config
  opening: Opening
  away: DatabaseAway | undefined
  readiness: Readiness
  /** Pause between two tries. */
  pauseMs: number
  log: Log
  /** Starts the parts that need the database. Called again if it fails. */
  start: () => Promise<Closable>
}

/** Interval between log lines that say why the service is waiting. */
const reportMs = 10_000

/** @throws {Error} from `start`, if waiting for the database would not help */
export async function startWhenOpen(options: StartWhenOpen): Promise<Closable> {
  const { config, readiness, log, start } = options
  let away: unknown = options.away
  if (away === undefined) {
    try {
      return await start()
    } catch (error) {
      // A server may become unreachable after it was opened, which is worth waiting for. The embedded server is ours,
      // so its loss is an error.
      if (config.databaseUrl === undefined || !isAway(error)) throw error
      away = error
    }
  }
  const stopped = new AbortController()
  readiness.closedBy = away
  log('service.waiting', { error: away })
  const started = tryUntilOpen(options, stopped.signal)
  return {
    close: async () => {
      stopped.abort()
      await (await started)?.close()
    },
  }
}

async function tryUntilOpen(options: StartWhenOpen, stopped: AbortSignal): Promise<Closable | undefined> {
  const { readiness, pauseMs, log, start } = options
  let reported = performance.now()
  // The pause ends early if the process stops.
  while (await delay(pauseMs, true, { signal: stopped }).catch(() => false)) {
    try {
      if (!(await opens(options, stopped))) return undefined
      const started = await start()
      readiness.closedBy = undefined
      return started
    } catch (error) {
      readiness.closedBy = error
      if (performance.now() - reported < reportMs) continue
      reported = performance.now()
      log('service.waiting', { error })
    }
  }
  return undefined
}

/**
 * Whether the database opens. Resolves to false if the process stops first: a migration may wait half a minute for
 * another process.
 */
async function opens({ config, opening }: StartWhenOpen, stopped: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  using _heard = addAbortListener(stopped, () => resolve(false))
  return await Promise.race([openDatabaseOfService(config, opening).then(() => true), promise])
}
