/**
 * Limits how many requests of one route run at once for one folder, across all processes that share the database.
 *
 * A slot is a session-level advisory lock of PostgreSQL, named after the route, the folder and a number below the
 * limit. Each process keeps one connection only for its locks. A killed process loses its connection, and its slots
 * with it, at once. A table of running requests would need leases, clocks and sweeps instead.
 *
 * PostgreSQL grants a session its own lock again, so the process remembers the slots it holds. The connection runs one
 * statement at a time. If it is lost, running requests continue, and their slots are locked again on a new connection;
 * until then other processes may admit a few requests too many. The connection leads to PostgreSQL itself: a pooler
 * shares sessions between clients, and their locks would mix.
 */
import type pg from 'pg'
import { connectSafely } from '../db/check-connection.ts'
import { unavailable } from '../db/outage.ts'
import { singleConnection } from '../db/pool.ts'
import { tryLocks, unlock } from '../db/statement.ts'
import { AppError } from '../errors.ts'
import type { Log } from '../log.ts'

/**
 * Milliseconds between two attempts to lock. A server that ends a session notifies the client first, and releases the
 * locks a moment later.
 */
const retryMs = 250

export class RequestSlots {
  readonly #url: string
  readonly #limit: number
  readonly #log: Log
  #client: pg.Client | undefined
  /** Keys (route, folder, number) of the slots that this process holds. */
  readonly #held = new Set<string>()
  /** Slots whose lock was lost with the connection and has not been regained yet. */
  readonly #missing = new Set<string>()
  /** For each route and folder, a promise that settles when the last request in the line has its slot. */
  readonly #lines = new Map<string, Promise<unknown>>()
  /** For each route and folder, the function to call when this process releases a slot. */
  readonly #onRelease = new Map<string, () => void>()
  #turn: Promise<unknown> = Promise.resolve()
  #retry: NodeJS.Timeout | undefined
  #closed = false

  /**
   * Connects when the first slot is acquired.
   * @param limit slots per route and folder
   */
  constructor(url: string, limit: number, log: Log) {
    this.#url = url
    this.#limit = limit
    this.#log = log
  }

  /**
   * @param whose the holder of the slots: a folder, a partner in a folder, or a token
   * @param limit most slots of this name; if absent, the limit for all routes
   * @returns function that releases the slot; must be called in every case, and may be called more than once
   * @throws {AppError} ERR-TOO-MANY-CONCURRENT-REQUEST if all slots are held, ERR-UNAVAILABLE
   */
  async acquire(route: string, whose: string, limit = this.#limit): Promise<() => void> {
    const release = await this.#tryAcquire(`${route} ${whose}`, limit)
    if (release) return release
    throw new AppError('ERR-TOO-MANY-CONCURRENT-REQUEST', { headers: { 'Retry-After': '1' } })
  }

  /**
   * Waits for a slot instead of being refused. Requests of this process that already wait come first.
   * @param signal aborted when the request is over: it then leaves the line
   * @returns as `acquire`; undefined if the request was over before it got a slot
   * @throws {AppError} ERR-UNAVAILABLE
   */
  async acquireInTurn(
    route: string,
    whose: string,
    signal: AbortSignal,
    limit = this.#limit,
  ): Promise<(() => void) | undefined> {
    const name = `${route} ${whose}`
    const before = this.#lines.get(name) ?? Promise.resolve()
    const acquired = before.then(() => this.#acquireWhenFree(name, signal, limit))
    const line = acquired.catch(() => {})
    this.#lines.set(name, line)
    try {
      return await acquired
    } finally {
      if (this.#lines.get(name) === line) this.#lines.delete(name)
    }
  }

  /**
   * Called only for the first request of a line. Other processes do not announce that they release a slot, so it also
   * tries at intervals.
   */
  async #acquireWhenFree(
    name: string,
    signal: AbortSignal,
    limit: number,
  ): Promise<(() => void) | undefined> {
    let retry = Promise.withResolvers<void>()
    const wake = () => retry.resolve()
    signal.addEventListener('abort', wake)
    this.#onRelease.set(name, wake)
    try {
      while (!signal.aborted) {
        retry = Promise.withResolvers()
        const release = await this.#tryAcquire(name, limit)
        if (release) return release
        const timer = setTimeout(wake, retryMs)
        await retry.promise
        clearTimeout(timer)
      }
      return undefined
    } finally {
      signal.removeEventListener('abort', wake)
      this.#onRelease.delete(name)
    }
  }

  async #tryAcquire(name: string, limit: number): Promise<(() => void) | undefined> {
    const slot = await this.#inTurn(() => this.#lockFreeSlot(name, limit))
    if (slot === undefined) return undefined
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      void this.#inTurn(() => this.#unlock(slot)).then(() => this.#onRelease.get(name)?.())
    }
  }

  /** Releases all slots. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#retry)
    await this.#inTurn(async () => {
      const client = this.#client
      this.#client = undefined
      await client?.end()
    })
  }

  async #lockFreeSlot(name: string, limit: number): Promise<string | undefined> {
    // The word `place` must stay: during an upgrade, processes of two versions share a database and must count
    // together.
    const slots = Array.from({ length: limit }, (_, number) => `grandlivre place ${name} ${number}`)
    const free = slots.filter((slot) => !this.#held.has(slot))
    if (free.length === 0) return undefined
    const [slot] = await this.#ask((client) => tryLocks(client, free, 1))
    if (slot !== undefined) this.#held.add(slot)
    return slot
  }

  async #unlock(slot: string): Promise<void> {
    this.#held.delete(slot)
    // If the connection was lost, so was the lock.
    if (this.#missing.delete(slot) || !this.#client) return
    try {
      await this.#ask((client) => unlock(client, [slot]))
    } catch {
      // The connection was lost just now, which released the lock and was logged.
    }
  }

  /** @throws {AppError} ERR-UNAVAILABLE */
  async #ask<T>(question: (client: pg.Client) => Promise<T>): Promise<T> {
    if (this.#closed) throw unavailable(new Error('The service is stopping'))
    let client: pg.Client | undefined
    try {
      client = this.#client ?? (await this.#connect())
      return await question(client)
    } catch (error) {
      if (client) this.#lose(client, error)
      throw unavailable(error)
    }
  }

  async #connect(): Promise<pg.Client> {
    const client = singleConnection(this.#url, 'grandlivre request slots')
    client.on('error', (error) => this.#lose(client, error))
    this.#client = await connectSafely(client, { actor: 'service' })
    return client
  }

  #lose(client: pg.Client, error: unknown): void {
    if (this.#client !== client) return
    this.#client = undefined
    // The connection may hang rather than be dead. Ending it releases its locks.
    client.end().catch(() => {})
    if (this.#closed) return
    this.#log('requestSlots.lost', { error })
    for (const slot of this.#held) this.#missing.add(slot)
    void this.#inTurn(() => this.#regain())
  }

  /** Locks lost slots again. Without this, running requests would not count until the next new request. */
  async #regain(): Promise<void> {
    if (this.#missing.size === 0 || this.#closed) return
    try {
      const regained = await this.#ask((client) => tryLocks(client, [...this.#missing]))
      for (const slot of regained) this.#missing.delete(slot)
      if (regained.length > 0)
        this.#log('requestSlots.regained', { slots: regained.length, missing: this.#missing.size })
    } catch {
      // The database is still unreachable; retried below.
    }
    if (this.#missing.size === 0) return
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => void this.#inTurn(() => this.#regain()), retryMs)
    this.#retry.unref()
  }

  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(run)
    this.#turn = result.catch(() => {})
    return result
  }
}
