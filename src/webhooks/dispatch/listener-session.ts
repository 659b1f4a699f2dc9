/**
 * The long-lived connection of a dispatcher. It listens for notifications of new events. It holds an advisory lock for
 * each subscription that the process is delivering to, and for each master key that the process has. A killed process
 * loses the connection at once, so leases and clocks are not needed. Like the connection of the request slots, it must
 * lead to PostgreSQL itself.
 */
import { hostname } from 'node:os'
import type pg from 'pg'
import packageJson from '../../../package.json' with { type: 'json' }
import { fingerprintOf, lockKeys } from '../../auth/master-key.sql.ts'
import type { MasterKeys } from '../../auth/secrets.ts'
import { connectSafely } from '../../db/check-connection.ts'
import { singleConnection } from '../../db/pool.ts'
import { tryLocks, unlock } from '../../db/statement.ts'
import { listenForEvents, passDeliveryIds } from './work.sql.ts'

export class ListenerSession {
  readonly #client: pg.Client
  readonly #losing = new AbortController()
  /** Aborted when the connection, and with it every lock, is lost. */
  readonly lost = this.#losing.signal
  /** Pending lock and unlock requests, each with its callback, by the key of the subscription. */
  #toLock = new Map<string, (isOurs: boolean) => void>()
  #toUnlock = new Map<string, () => void>()
  #isWorking = false

  private constructor(client: pg.Client) {
    this.#client = client
  }

  /**
   * @param masterKeys the keys of this process; the session shows rotate-key which they are
   * @param onEvents called with the id of a schema that has new events
   * @throws {Error} if the database is unreachable
   */
  static async open(
    url: string,
    masterKeys: MasterKeys,
    onEvents: (schemaId: string) => void,
  ): Promise<ListenerSession> {
    const client = singleConnection(url, `grandlivre dispatcher ${processName()} ${packageJson.version}`)
    const session = new ListenerSession(client)
    client.on('error', () => session.#losing.abort())
    client.on('end', () => session.#losing.abort())
    client.on('notification', ({ payload }) => onEvents(payload ?? ''))
    try {
      await connectSafely(client, { actor: 'service' })
      await lockKeys(client, masterKeys.map(fingerprintOf))
      await passDeliveryIds(client)
      await listenForEvents(client)
    } catch (error) {
      await session.close()
      throw error
    }
    return session
  }

  /**
   * Locks the subscription until `unlock` or the end of the connection.
   * @returns false if another process holds it or the connection is lost
   */
  lock(subscriptionId: string): Promise<boolean> {
    return this.#ask(this.#toLock, subscriptionId)
  }

  unlock(subscriptionId: string): Promise<void> {
    return this.#ask(this.#toUnlock, subscriptionId)
  }

  async close(): Promise<void> {
    this.#losing.abort()
    await this.#client.end().catch(() => {})
  }

  #ask<Answer>(asked: Map<string, (answer: Answer) => void>, subscriptionId: string): Promise<Answer> {
    const { promise, resolve } = Promise.withResolvers<Answer>()
    asked.set(`grandlivre subscription ${subscriptionId}`, resolve)
    if (!this.#isWorking) void this.#work()
    return promise
  }

  /**
   * A connection runs one statement at a time. All requests that arrive during one statement share the next. So a
   * hundred subscriptions that end at the same moment delay any other by one statement.
   */
  async #work(): Promise<void> {
    this.#isWorking = true
    // Requests made in the same tick share a statement.
    await Promise.resolve()
    while (this.#toLock.size + this.#toUnlock.size > 0) {
      const [unlocking, locking] = [this.#toUnlock, this.#toLock]
      this.#toUnlock = new Map()
      this.#toLock = new Map()
      let locked = new Set<string>()
      try {
        if (unlocking.size > 0) await unlock(this.#client, [...unlocking.keys()])
        if (locking.size > 0) locked = new Set(await tryLocks(this.#client, [...locking.keys()]))
      } catch {
        // The connection may hang rather than be dead. Ending it releases its locks.
        await this.close()
      }
      for (const done of unlocking.values()) done()
      for (const [key, answer] of locking) answer(locked.has(key))
    }
    this.#isWorking = false
  }
}

/**
 * Returns host and process, for rotate-key and status, which may not see the address of another login's session.
 * PostgreSQL cuts session names at 63 bytes, so the end of the host name is kept: it tells the replicas of a set apart.
 */
function processName(): string {
  const host = hostname()
    .split('.', 1)[0]!
    .replaceAll(/[^\w-]/g, '_')
    .slice(-24)
  return `${host}:${process.pid}`
}
