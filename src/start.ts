/** The service in one process: everything it is made of, started in order and stopped in reverse. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { loadMasterKey } from './auth/master-key.ts'
import { RequestSlots } from './auth/request-slots.ts'
import { startBackground } from './background.ts'
import { type Config, limits, urlOf } from './config.ts'
import { asServiceRole, checkExportAddress, type Database } from './db/database.ts'
import { createPool } from './db/pool.ts'
import { createApp } from './http/app.ts'
import { createListener } from './http/listener.ts'
import { Readiness } from './http/readiness.ts'
import { ExportQueue } from './jobs/queue.ts'
import { createLog, type Log } from './log.ts'
import { beginExports, needsOf } from './needs.ts'
import { openUnlessAway, startWhenOpen } from './open-database.ts'
import { openStore } from './store/open-store.ts'
import { storeSettings } from './store/store.ts'
import { createThreads } from './threads/pool.ts'

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

/**
 * A database server that cannot be reached is waited for: until it is there, requests get 503 and /readyz names it.
 * @throws {Error} where something else is missing, or the database is not safe to use, with what to do; nothing is left
 *   running then
 */
export async function startService(config: Config, options: StartOptions = {}): Promise<RunningService> {
  await using stack = new AsyncDisposableStack()
  const log = options.log ?? createLog(config.logLevel)
  const { database, urls, away } = await openUnlessAway(config)
  stack.defer(async () => database?.close())
  const { serviceUrl } = urls
  const exportUrl =
    config.exportDatabaseUrl === undefined ? serviceUrl : asServiceRole(config.exportDatabaseUrl)
  if (exportUrl !== serviceUrl) await checkExportAddress(exportUrl)
  const masterKey = await loadMasterKey(config)
  const pool = createPool(serviceUrl, { max: limits.serviceConnectionsMax, applicationName: 'grandlivre' })
  stack.defer(() => pool.end())
  const requestSlots = new RequestSlots(serviceUrl, config.rateLimit.concurrent, log)
  stack.defer(() => requestSlots.close())
  const threads = createThreads(config.exportThreads, exportUrl)
  stack.defer(() => threads.destroy())
  const queue = new ExportQueue(serviceUrl, log)
  stack.defer(() => queue.close())
  const bound = database && (await options.prepare?.(database, masterKey))
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
  const { needs, close: closeNeeds } = await needsOf({ config, database: pool, exportUrl, store, threads })
  stack.defer(closeNeeds)
  const readiness = new Readiness(needs, () => beginExports([serviceUrl, exportUrl]))
  const app = createApp({ config, database: pool, requestSlots, store, queue, threads, readiness, log })
  bound?.(url)
  const start = () =>
    startBackground({
      ...{ config, database: pool, serviceUrl, masterKey, queue, threads, store, log },
      storeSettings: settings,
    })
  const background = await startWhenOpen({ config, away, readiness, log, start })
  opened.resolve(app)
  // Side by side: each has some seconds to come to an end, in which no new request is taken.
  stack.defer(async () => {
    await Promise.all([stopServing(), background.close()])
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
