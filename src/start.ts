/** The service in one process: starts its parts in order and stops them in reverse. */
import type { Server } from 'node:http'
import { keyCheck, loadMasterKey } from './auth/master-key.ts'
import { type Config, limits } from './config.ts'
import { startConsole } from './console/start-console.ts'
import { checkExportAddress, type Database, exportAddress } from './db/database.ts'
import { createApp, createOpeningApp } from './http/app.ts'
import { createListener } from './http/listener.ts'
import { Readiness } from './http/readiness.ts'
import { ListReads } from './http/stream/list-reads.ts'
import { RunningStreams } from './http/stream/running-streams.ts'
import { RunningAttempts } from './jobs/running-attempts.ts'
import { listen, urlOf } from './listen.ts'
import { createLog, type Log } from './log.ts'
import { startBackground } from './start/background.ts'
import { openConnections } from './start/connections.ts'
import { watchEpoch } from './start/epoch.ts'
import { observe } from './start/gauges/observed.ts'
import { observeStanding } from './start/gauges/standing-gauges.ts'
import { beginExport, needsOf } from './start/needs.ts'
import { openingSteps, openUnlessAway, startWhenOpen } from './start/open-database.ts'
import { watchReplica } from './start/replica.ts'
import { openStore } from './store/open-store.ts'
import { storeSettings } from './store/store.ts'
import { startTelemetry } from './telemetry/start-telemetry.ts'
import type { Telemetry } from './telemetry/telemetry.ts'
import { createThreads } from './threads/pool.ts'
import { checkTiming, defaultTiming, type Timing } from './timing.ts'
import { FairTurns } from './webhooks/dispatch/fair-turns.ts'
import { postPartsOf } from './webhooks/dispatch/post.ts'

export interface RunningService {
  /** `http://127.0.0.1:8080` */
  url: string
  /** `http://127.0.0.1:9090/console`; undefined without CONSOLE_PORT. */
  consoleUrl: string | undefined
  /** `http://127.0.0.1:9464/metrics`; undefined if METRICS_PORT is not set. */
  metricsUrl: string | undefined
  /**
   * Stops accepting connections, waits up to `drainMs` (timing.ts) for running responses, then stops everything else.
   * @returns whether all responses ended by themselves
   */
  close(): Promise<boolean>
}

export interface StartOptions {
  log?: Log
  /** Default: `defaultTiming`. */
  timing?: Timing
  /**
   * Runs once the database is open. The function it returns is called with the service's URL before the first response
   * but those of probes.
   */
  prepare?: (database: Database, masterKey: Buffer) => Promise<(url: string) => void>
}

/**
 * Starts the service. While the database server cannot be reached, requests get 503 and /readyz names it.
 * @throws {Error} if anything else is missing or the database is unsafe to use; says what to do. Nothing is left
 *   running.
 */
export async function startService(config: Config, options: StartOptions = {}): Promise<RunningService> {
  await using stack = new AsyncDisposableStack()
  const log = options.log ?? createLog(config.logLevel)
  const timing = options.timing ?? defaultTiming
  checkTiming(timing)
  const { telemetry, metricsUrl, close: closeTelemetry } = await startTelemetry(config, timing.telemetry, log)
  stack.defer(closeTelemetry)
  const steps = openingSteps(log)
  const listening = await listenFirst(stack, config, { log, telemetry, timing, steps })
  const { url } = listening
  const opening = { check: await keyCheck(config), onStep: steps.onStep }
  const { database, urls, away } = await openUnlessAway(config, opening)
  stack.defer(async () => database?.close())
  const { service, directUrl } = urls
  const exportsFrom = exportAddress(config, service)
  const replicaAddress = exportsFrom === service ? undefined : exportsFrom
  if (replicaAddress) await checkExportAddress(replicaAddress)
  const masterKey = await loadMasterKey(config)
  const connections = openConnections(stack, urls, { config, timing, telemetry, log })
  const { database: pool, direct, queue, notifications, requestSlots, audit } = connections
  const standing = observeStanding(telemetry, pool)
  const bound = database && (await options.prepare?.(database, masterKey))
  // Links to files contain the port, which is known only once it is bound if PORT is 0.
  const settings = storeSettings(config, masterKey, url)
  const store = await openStore(settings, timing.store)
  const threads = createThreads(config.exportThreads, telemetry, {
    database: service,
    replica: replicaAddress && { address: replicaAddress, timing: timing.replica },
    exportsPerThread: config.exportsPerThread,
    store: settings,
    storeTiming: timing.store,
    timeZone: config.timeZone,
  })
  stack.defer(() => threads.destroy())
  const needs = await needsOf(config, masterKey, connections, { store, threads, telemetry })
  const replica =
    replicaAddress && watchReplica(pool, replicaAddress, { threads, timing: timing.replica, telemetry, log })
  stack.defer(async () => replica?.close())
  const begin = () => beginExport(service)
  const readiness = new Readiness(needs, begin, timing.missingMs, replica ? [replica.need] : [], steps.doing)
  const epoch = watchEpoch(pool, log)
  observe({ config, timing, database: pool, readiness, epoch, audit, telemetry, log })
  const deliveries = postPartsOf(config, timing.deliveries, telemetry)
  stack.defer(() => deliveries.agent.destroy())
  const attempts = new RunningAttempts()
  const parts = { config, database: pool, queue, threads, store, deliveries, masterKey, telemetry, log }
  const streams = new RunningStreams()
  const reads = {
    waitingReads: new FairTurns(limits.waitingReadsMax),
    listReads: new ListReads(limits.listReadEveryMs),
  }
  const services = { ...parts, ...reads, requestSlots, notifications, audit, readiness, epoch, streams }
  const app = createApp(services)
  const isAway = away !== undefined
  const staffConsole = await startConsole({ services, urls, isAway, attempts, standing, timing })
  stack.defer(async () => staffConsole?.close())
  bound?.(url)
  const start = () => startBackground({ ...parts, attempts, direct, directUrl, timing })
  const pauseMs = timing.databaseAwayMs
  const background = await startWhenOpen({ config, opening, away, readiness, pauseMs, log, start })
  listening.answerWith(app)
  // In parallel: each may need some seconds to finish, and no request is accepted meanwhile.
  stack.defer(async () => {
    notifications.stopWaiting()
    await Promise.all([listening.stop(), background.close()])
  })
  log('service.listening', { url, pid: process.pid })
  const running = stack.move()
  return {
    url,
    consoleUrl: staffConsole?.url,
    metricsUrl,
    close: async () => {
      await running.disposeAsync()
      return listening.drained()
    },
  }
}

type App = ReturnType<typeof createApp>

/** Binds the port. Until `answerWith`, probes learn the step of the start, and all other requests get 503. */
async function listenFirst(
  stack: AsyncDisposableStack,
  config: Config,
  parts: { log: Log; telemetry: Telemetry; timing: Timing; steps: ReturnType<typeof openingSteps> },
) {
  const { timing, steps } = parts
  let app: Pick<App, 'fetch'> = createOpeningApp(parts, () => steps.doing() ?? 'starting')
  const fetch = (...request: Parameters<App['fetch']>) => app.fetch(...request)
  const server = createListener(fetch, parts, timing.listener)
  const port = await listen(server, config, { port: 'PORT', host: 'HOST' })
  let drained = true
  const stop = async () => {
    drained = (await drain(server, timing.drainMs)) && drained
  }
  stack.defer(stop)
  return {
    url: urlOf(config.host, port),
    answerWith: (ready: App) => {
      app = ready
    },
    stop,
    /** Whether all responses ended by themselves. */
    drained: () => drained,
  }
}

/** @returns whether all responses ended by themselves */
async function drain(server: Server, drainMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  let drained = true
  server.close(() => resolve(drained))
  // Otherwise a client that reuses its connection would be served until the deadline and then cut off.
  server.prependListener('request', (_, outgoing) => {
    outgoing.shouldKeepAlive = false
  })
  // A kept-alive connection becomes idle only when its response ends, and would then keep the server open.
  const sweep = setInterval(() => server.closeIdleConnections(), 50)
  const deadline = setTimeout(() => {
    drained = false
    server.closeAllConnections()
  }, drainMs)
  try {
    return await promise
  } finally {
    clearInterval(sweep)
    clearTimeout(deadline)
  }
}
