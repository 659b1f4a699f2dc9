/**
 * Lets requests wait for what PostgreSQL notifies of: new events of a schema, a changed ledger of a folder, a change in
 * the list of a firm's folders.
 *
 * A request first begins to watch, then compares what its caller knows with the database, and then waits. So it notices
 * every change that commits in between. A waiting request is an entry in a map and a timer; it holds no database
 * connection. All requests of a process share one listening connection, which opens for the first of them. When that
 * connection is lost, notifications may be lost with it, so every waiting request compares again once it is back.
 *
 * The connection must lead to PostgreSQL itself: a pooler shares sessions between clients.
 */
import type pg from 'pg'
import { limits } from '../config.ts'
import { AppError } from '../errors.ts'
import type { Log } from '../log.ts'
import { connectSafely } from './check-connection.ts'
import { unavailable } from './outage.ts'
import { singleConnection } from './pool.ts'

/** Each payload is an id: of a schema, of a folder, of a firm, in this order. */
const channels = ['grandlivre_events', 'grandlivre_ledgers', 'grandlivre_firms'] as const
type Channel = (typeof channels)[number]

export class Notifications {
  readonly #url: string
  readonly #log: Log
  readonly #retryMs: number
  readonly #most: number
  /** The watches of each channel and payload. */
  readonly #watches = new Map<string, Set<Watch>>()
  #waiting = 0
  #client: pg.Client | undefined
  /** Resolves when the connection listens; undefined while there is no connection. */
  #listening: Promise<void> | undefined
  /** Whether notifications may have been lost with a connection. */
  #missed = false
  #retry: NodeJS.Timeout | undefined
  #stopping = false

  /**
   * @param retryMs pause before a lost connection is opened again
   * @param most requests that may wait at once
   */
  constructor(url: string, log: Log, retryMs: number, most: number = limits.waitingRequestsMax) {
    this.#url = url
    this.#log = log
    this.#retryMs = retryMs
    this.#most = most
  }

  /**
   * Watches for notifications. The watch hears every one from now on, until it is disposed of.
   * @param id the id that is the payload of notifications on that channel
   * @throws {AppError} ERR-UNAVAILABLE if the database cannot be reached
   */
  async watch(channel: Channel, id: string): Promise<Watch> {
    const key = keyOf(channel, id)
    const watch: Watch = new Watch(
      () => this.#admit(),
      (isAdmitted) => {
        if (isAdmitted) this.#waiting -= 1
        const left = this.#watches.get(key)
        if (left?.delete(watch) && left.size === 0) this.#watches.delete(key)
      },
    )
    if (this.#stopping) {
      watch.stop()
      return watch
    }
    this.#watches.set(key, (this.#watches.get(key) ?? new Set()).add(watch))
    try {
      await this.#listen()
    } catch (error) {
      watch[Symbol.dispose]()
      throw unavailable(error)
    }
    return watch
  }

  /** Ends every wait, and every later one at once. A stopping process calls this first. */
  stopWaiting(): void {
    this.#stopping = true
    clearTimeout(this.#retry)
    for (const watches of this.#watches.values()) for (const watch of watches) watch.stop()
  }

  async close(): Promise<void> {
    this.stopWaiting()
    const client = this.#client
    this.#client = undefined
    await client?.end().catch(() => {})
  }

  #admit(): void {
    if (this.#waiting >= this.#most) {
      const message = `${this.#most} requests wait already; repeat this one after the seconds in Retry-After`
      throw new AppError('ERR-UNAVAILABLE', { message })
    }
    this.#waiting += 1
  }

  #listen(): Promise<void> {
    this.#listening ??= this.#connect()
    return this.#listening
  }

  async #connect(): Promise<void> {
    const client = singleConnection(this.#url, 'grandlivre notifications')
    this.#client = client
    client.on('error', (error) => this.#lose(client, error))
    client.on('end', () => this.#lose(client, new Error('The server ended the connection')))
    client.on('notification', ({ channel, payload = '' }) => {
      for (const watch of this.#watches.get(keyOf(channel, payload)) ?? []) watch.notify()
    })
    try {
      await connectSafely(client, { actor: 'service' })
      await client.query(channels.map((channel) => `listen ${channel}`).join('; '))
    } catch (error) {
      this.#lose(client, error)
      throw error
    }
    if (!this.#missed) return
    this.#missed = false
    for (const watches of this.#watches.values()) for (const watch of watches) watch.notify()
  }

  #lose(client: pg.Client, error: unknown): void {
    if (this.#client !== client) return
    this.#client = undefined
    this.#listening = undefined
    this.#missed = true
    // The connection may hang rather than be dead.
    client.end().catch(() => {})
    if (this.#stopping) return
    this.#log('notifications.lost', { error })
    this.#listenLater()
  }

  #listenLater(): void {
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => {
      // Each failure ends in #lose, which tries again. If no request watches, the next one to watch opens the
      // connection.
      if (this.#watches.size > 0) this.#listen().catch(() => {})
    }, this.#retryMs)
    this.#retry.unref()
  }
}

function keyOf(channel: string, id: string): string {
  return `${channel} ${id}`
}

/** What one request waits for. Dispose of it in every case. */
export class Watch implements Disposable {
  readonly #admit: () => void
  readonly #leave: (isAdmitted: boolean) => void
  readonly #over = new AbortController()
  #isAdmitted = false
  #hasNews = false
  #isLeft = false
  #wake = () => {}

  /**
   * @param admit called at most once, before the first wait. @param leave called once, when the watch is disposed of
   */
  constructor(admit: () => void, leave: (isAdmitted: boolean) => void) {
    this.#admit = admit
    this.#leave = leave
  }

  /** Aborted when the wait has ended: the process stops, or the watch was stopped or disposed of. */
  get over(): AbortSignal {
    return this.#over.signal
  }

  /**
   * Counts the request as waiting from now on, whatever it waits for.
   * @throws {AppError} ERR-UNAVAILABLE if too many requests wait
   */
  admit(): void {
    if (this.#isAdmitted) return
    this.#admit()
    this.#isAdmitted = true
  }

  /**
   * Waits for a notification. One that came since the watch began, or since the last wait, also counts.
   * @param ms longest wait
   * @returns false if the time is over, the process stops or the watch was disposed of
   * @throws {AppError} ERR-UNAVAILABLE if too many requests wait
   */
  async next(ms: number): Promise<boolean> {
    if (!this.#hasNews && !this.over.aborted && ms > 0) {
      const { promise: notified, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      await this.meanwhile(notified, ms)
    }
    const hasNews = this.#hasNews && !this.over.aborted
    this.#hasNews = false
    return hasNews
  }

  /**
   * Waits for a result that several requests share.
   * @param ms longest wait
   * @returns the result; undefined if the time is over or the wait ends first
   * @throws {AppError} ERR-UNAVAILABLE if too many requests wait
   */
  async meanwhile<Result>(shared: Promise<Result>, ms: number): Promise<Result | undefined> {
    this.admit()
    const { promise: ended, resolve } = Promise.withResolvers<undefined>()
    const end = () => resolve(undefined)
    const timer = setTimeout(end, ms)
    this.over.addEventListener('abort', end)
    if (this.over.aborted) end()
    try {
      return await Promise.race([shared, ended])
    } finally {
      clearTimeout(timer)
      this.over.removeEventListener('abort', end)
    }
  }

  notify(): void {
    this.#hasNews = true
    this.#wake()
  }

  /** Ends the wait, and every later one at once. */
  stop(): void {
    this.#over.abort()
  }

  [Symbol.dispose](): void {
    if (this.#isLeft) return
    this.#isLeft = true
    this.stop()
    this.#leave(this.#isAdmitted)
  }
}
