/** The service in one process: everything it is made of, started in order and stopped in reverse. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { loadMasterKey } from './auth/master-key.ts'
import { Places } from './auth/places.ts'
import { type Config, limits, urlOf } from './config.ts'
import { type Database, openDatabase } from './db/database.ts'
import { createPool, withStartupOptions } from './db/pool.ts'
import { readVersion } from './db/version.sql.ts'
import { ExportQueue } from './exports/queue.ts'
import { startRetention } from './exports/retention.ts'
import { Supervisor } from './exports/supervisor.ts'
import { createApp } from './http/app.ts'
import { createListener } from './http/listener.ts'
import { createLog, type Log } from './log.ts'
import { openStore } from './store/open-store.ts'
import { storeSettings } from './store/store.ts'
import { createThreads } from './threads/pool.ts'
import { Dispatcher } from './webhooks/dispatcher.ts'
import { startEventRetention } from './webhooks/retention.ts'
import { guardedAgent } from './webhooks/target.ts'

export interface RunningService {
  /** `http://127.0.0.1:8080` */
  url: string
  /**
   * Stops accepting, lets running answers end for `limits.drainMs` at most, then stops everything else.
   * @returns whether all answers ended by themselves
   */
  close(): Promise<boolean>
}

export interface StartOptions {
  log?: Log
  /**
   * Runs once the database is there. What it gives back is called with the address as soon as the port is bound and
   * before the first request is answered.
   */
  prepare?: (database: Database, masterKey: Buffer) => Promise<(url: string) => void>
}

/** @throws {Error} where something it needs is missing, with what to do; nothing is left running then */
export async function startService(config: Config, options: StartOptions = {}): Promise<RunningService> {
  await using stack = new AsyncDisposableStack()
  const log = options.log ?? createLog(config.logLevel)
  const database = await openDatabase(config)
  stack.defer(() => database.close())
  const masterKey = await loadMasterKey(config)
  const pool = createPool(database.serviceUrl, {
    max: limits.serviceConnectionsMax,
    applicationName: 'grandlivre',
  })
  stack.defer(() => pool.end())
  const places = new Places(database.serviceUrl, config.rateLimit.concurrent, log)
  stack.defer(() => places.close())
  const threads = createThreads(config.exportThreads, exportUrl(config, database))
  stack.defer(() => threads.destroy())
  const queue = await ExportQueue.open(database.serviceUrl, log)
  stack.defer(() => queue.close())
  const bound = await options.prepare?.(database, masterKey)
  const version = await readVersion(pool)
  const opened = Promise.withResolvers<ReturnType<typeof createApp>>()
  const server = createListener(async (...request) => (await opened.promise).fetch(...request), log)
  const url = await listen(server, config)
  let drained = true
  const stopServing = async () => {
    drained = (await drain(server)) && drained
  }
  stack.defer(stopServing)
  // Links to files name the port, and a free one is known only once it is bound. Requests that come earlier wait.
  const settings = storeSettings(config, masterKey, url)
  const store = await openStore(settings)
  const app = createApp({
    config,
    database: pool,
    places,
    store,
    queue,
    threads,
    needs: {
      'the database at its version': async () => (await readVersion(pool)) === version,
      'the store of files': () => store.check().then(() => true),
      'the export threads': async () => threads.threads.length > 0,
    },
    log,
  })
  bound?.(url)
  opened.resolve(app)
  const supervisor = await Supervisor.start({
    database: pool,
    queue,
    threads,
    store,
    storeSettings: settings,
    concurrency: config.exportThreads,
    timeZone: config.timeZone,
    log,
  })
  const retention = startRetention({ database: pool, store, retentionDays: config.fileRetentionDays, log })
  const eventRetention = startEventRetention({ database: pool, log })
  const dispatcher = startDispatcher(config, database, masterKey, log)
  // Side by side: each has some seconds to come to an end, in which no new request is taken.
  stack.defer(async () => {
    const loops = [supervisor, retention, eventRetention, dispatcher]
    await Promise.all([stopServing(), ...loops.map((loop) => loop.close())])
  })
  log('service.listening', { url, pid: process.pid })
  const running = stack.move()
  return {
    url,
    close: async () => {
      await running.disposeAsync()
      return drained
    },
  }
}

/** With connections of its own: deliveries must not make requests wait for theirs. */
function startDispatcher(
  config: Config,
  database: Database,
  masterKey: Buffer,
  log: Log,
): { close(): Promise<void> } {
  const rules = { allowInsecure: config.webhookAllowInsecure }
  const agent = guardedAgent(rules)
  const pool = createPool(database.serviceUrl, {
    max: limits.deliveryConnectionsMax,
    applicationName: 'grandlivre deliveries',
  })
  const dispatcher = Dispatcher.start({
    serviceUrl: database.serviceUrl,
    database: pool,
    masterKey,
    agent,
    rules,
    log,
    now: Date.now,
    random: Math.random,
  })
  return {
    close: async () => {
      await dispatcher.close()
      await agent.destroy()
      await pool.end()
    },
  }
}

/** Row-level security binds the role, not the login: a replica's address gets the role as the main one did. */
function exportUrl({ exportDatabaseUrl }: Config, { serviceUrl }: Database): string {
  if (exportDatabaseUrl === undefined) return serviceUrl
  return withStartupOptions(exportDatabaseUrl, '-c role=grandlivre_service')
}

function listen(server: Server, config: Config): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  server.once('error', (error: NodeJS.ErrnoException) => reject(explain(error, config)))
  server.listen(config.port, config.host, () => {
    const { port } = server.address() as AddressInfo
    resolve(urlOf(config.host, port))
  })
  return promise
}

function explain(error: NodeJS.ErrnoException, { host, port }: Config): Error {
  const reasons: Record<string, string> = {
    EADDRINUSE: `Port ${port} of ${host} is taken: stop what listens there, or set PORT (0 picks a free one)`,
    EACCES: `Port ${port} may not be opened by this user: set PORT to 1024 or more`,
    EADDRNOTAVAIL: `${host} is no address of this machine: set HOST`,
    ENOTFOUND: `${host} is no address of this machine: set HOST`,
  }
  return new Error(reasons[error.code ?? ''] ?? `Cannot listen on ${host}:${port}: ${error.message}`, {
    cause: error,
  })
}

/** @returns whether all answers ended by themselves */
async function drain(server: Server): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  let drained = true
  server.close(() => resolve(drained))
  // Whoever asks again as soon as it is answered would be served until the deadline, and then cut off.
  server.prependListener('request', (_, outgoing) => {
    outgoing.shouldKeepAlive = false
  })
  // A kept-alive connection is idle only once its running answer has ended, and would then hold the server open.
  const sweep = setInterval(() => server.closeIdleConnections(), 50)
  const deadline = setTimeout(() => {
    drained = false
    server.closeAllConnections()
  }, limits.drainMs)
  try {
    return await promise
  } finally {
    clearInterval(sweep)
    clearTimeout(deadline)
  }
}
