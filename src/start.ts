/** The service in one process: starts its parts in order and stops them in reverse. */
import { keyCheck, linkKey, loadMasterKeys } from './auth/master-key.sql.ts'
import type { MasterKeys } from './auth/secrets.ts'
import { type Config, limits } from './config.ts'
import { startConsole } from './console/start-console.ts'
import { checkExportAddress, type Database, replicaAddress } from './db/database.ts'
import { createApp } from './http/app.ts'
import { Readiness } from './http/readiness.ts'
import { ListReads } from './http/stream/list-reads.ts'
import { RunningAttempts } from './jobs/running-attempts.ts'
import { createLog, type Log } from './log.ts'
import { startBackground } from './start/background.ts'
import { openConnections } from './start/connections.ts'
import { observeProcess, observeStanding } from './start/gauges.ts'
import { listenFirst } from './start/listening.ts'
import { beginExport, needsOf } from './start/needs.ts'
import { openingSteps, openUnlessAway, startWhenOpen } from './start/open-database.ts'
import { watchReplica } from './start/replica.ts'
import { observedStore } from './store/observed-store.ts'
import { openStore } from './store/open-store.ts'
import { storeSettings } from './store/store.ts'
import { startTelemetry } from './telemetry/start-telemetry.ts'
import { countStoreRequest } from './telemetry/telemetry.ts'
import { createThreads } from './threads/pool.ts'
import { checkTiming, defaultTiming, type Timing } from './timing.ts'
import { FairTurns } from './webhooks/dispatch/fair-turns.ts'
import { httpToSubscribers } from './webhooks/dispatch/post.ts'

export interface StartOptions {
  log?: Log
  /** Default: `defaultTiming`. */
  timing?: Timing
  /**
   * Runs once the database is open. The function that it returns is called with the service's URL, before any response
   * except those to probes.
   */
  prepare?: (database: Database, masterKeys: MasterKeys) => Promise<(url: string) => void>
}

/**
 * Starts the service. While the database server cannot be reached, requests get 503 and /readyz names the server.
 *
 * When `close(drainMs)` is called, /readyz is 503 at once, background work takes nothing new, and requests that wait for
 * a change are answered. New requests are answered for `drainMs` more; requests that still run then have STOP_SECONDS.
 * After that everything else stops.
 * @throws {Error} if anything else is missing or the database is unsafe to use, with the remedy. Nothing is left
 *   running.
 */
export async function startService(config: Config, options: StartOptions = {}) {
  await using stack = new AsyncDisposableStack()
  const log = options.log ?? createLog(config.logLevel)
  const timing = options.timing ?? defaultTiming
  checkTiming(timing)
  const { telemetry, metricsUrl, close: closeTelemetry } = await startTelemetry(config, timing.telemetry, log)
  stack.defer(closeTelemetry)
  const steps = openingSteps(log)
  const listening = await listenFirst(stack, config, { log, telemetry, timing, steps })
  const { url, streams } = listening
  const opening = { check: await keyCheck(config), onStep: steps.onStep }
  const { database, urls, away } = await openUnlessAway(config, opening)
  stack.defer(async () => database?.close())
  const { service, directUrl } = urls
  const replicaAt = replicaAddress(config, service)
  if (replicaAt) await checkExportAddress(replicaAt)
  const masterKeys = await loadMasterKeys(config)
  const connections = openConnections(stack, urls, { config, timing, telemetry, log })
  const { database: pool, direct, queue, notifications, requestSlots, audit } = connections
  const standing = observeStanding(telemetry, pool)
  const bound = database && (await options.prepare?.(database, masterKeys))
  // Links to files contain the port. If PORT is 0, it is known only once it is bound.
  const settings = storeSettings(config, masterKeys, url)
  const store = await openStore(settings, timing.store, () => linkKey(pool, masterKeys))
  const threads = createThreads(config.exportThreads, telemetry, {
    database: service,
    replica: replicaAt && { address: replicaAt, timing: timing.replica },
    exportsPerThread: config.exportsPerThread,
    store: settings,
    storeTiming: timing.store,
    timeZone: config.timeZone,
  })
  stack.defer(() => threads.destroy())
  const files = observedStore(store, (request) => countStoreRequest(telemetry, request))
  const needs = await needsOf(config, masterKeys, connections, { store: files, threads })
  const replica =
    replicaAt && watchReplica(pool, replicaAt, { threads, timing: timing.replica, telemetry, log })
  stack.defer(async () => replica?.close())
  const begin = () => beginExport(service)
  const readiness = new Readiness(needs, begin, timing.missingMs, replica ? [replica.need] : [], steps.doing)
  const observed = { config, database: pool, readiness, log }
  const epoch = observeProcess(observed, audit, telemetry, timing.certificatesMs)
  const deliveries = httpToSubscribers(config, timing.deliveries, telemetry)
  stack.defer(() => deliveries.agent.destroy())
  const attempts = new RunningAttempts()
  const services = {
    ...{ config, database: pool, queue, threads, store, deliveries, masterKeys, telemetry, log },
    ...{ requestSlots, notifications, audit, readiness, epoch, streams },
    waitingReads: new FairTurns(limits.waitingReadsMax),
    listReads: new ListReads(limits.listReadEveryMs),
  }
  const app = createApp(services)
  const isAway = away !== undefined
  const staffConsole = await startConsole({ services, urls, isAway, attempts, standing, timing })
  stack.defer(async () => staffConsole?.close())
  bound?.(url)
  const start = () => startBackground(services, { store: files, attempts, direct, directUrl, timing })
  const pauseMs = timing.databaseAwayMs
  const background = await startWhenOpen({ config, opening, away, readiness, pauseMs, log, start })
  listening.answerWith(app)
  // Stops these in parallel, because each may need some seconds to finish.
  stack.defer(async () => {
    readiness.leave()
    notifications.stopWaiting()
    await Promise.all([listening.stop(), background.close()])
  })
  log('service.listening', { url, pid: process.pid })
  const running = stack.move()
  return {
    /** Address of the service: `http://127.0.0.1:8080`. */
    url,
    /** Address of the console: `http://127.0.0.1:9090/console`; undefined if CONSOLE_PORT is not set. */
    consoleUrl: staffConsole?.url,
    /** Address of the metrics: `http://127.0.0.1:9464/metrics`; undefined if METRICS_PORT is not set. */
    metricsUrl,
    /** Stops the service. @returns whether all responses ended by themselves */
    close: async (drainMs = 0) => {
      listening.drainFor(drainMs)
      await running.disposeAsync()
      return listening.drained()
    },
  }
}
