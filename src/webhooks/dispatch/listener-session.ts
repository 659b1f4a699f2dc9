/**
 * The long-lived connection of a dispatcher. It listens for notifications of new events, and holds an advisory lock for
 * each subscription that the process is delivering to, and for each master key that it has. A killed process loses the connection and with it the locks, at
 * once and without leases or clocks. Like the connection of the request slots, it must lead to PostgreSQL itself.
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
  readonly #lost = Promise.withResolvers<void>()
  /** Resolves when the connection, and with it every lock, is lost. */
  readonly lost = this.#lost.promise
  #isLost = false
  /** Pending lock and unlock requests by the key of a subscription, with their callbacks. */
  #toLock = new Map<string, (isOurs: boolean) => void>()
  #toUnlock = new Map<string, () => void>()
  #isWorking = false

  private constructor(client: pg.Client) {
    this.#client = client
  }

  /**
   * @param masterKeys those of this process, which rotate-key has to know
   * @param onEvents called with the id of a schema that has new events
   * @throws {Error} if the database is away
   */
  static async open(
    url: string,
    masterKeys: MasterKeys,
    onEvents: (schemaId: string) => void,
  ): Promise<ListenerSession> {
    const client = singleConnection(url, `grandlivre dispatcher ${processName()} ${packageJson.version}`)
    const session = new ListenerSession(client)
    client.on('error', () => session.#lose())
    client.on('end', () => session.#lose())
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

  get isLost(): boolean {
    return this.#isLost
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
    this.#lose()
    await this.#client.end().catch(() => {})
  }

  #lose(): void {
    this.#isLost = true
    this.#lost.resolve()
  }

  #ask<Answer>(asked: Map<string, (answer: Answer) => void>, subscriptionId: string): Promise<Answer> {
    const { promise, resolve } = Promise.withResolvers<Answer>()
    asked.set(`grandlivre subscription ${subscriptionId}`, resolve)
    if (!this.#isWorking) void this.#work()
    return promise
  }

  /**
   * A connection runs one statement at a time. All requests that arrive during one statement share the next: a hundred
   * subscriptions that end at the same moment delay another by one statement.
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
        // A silent connection may hang rather than be dead. Once ended, it holds no lock.
        await this.close()
      }
      for (const done of unlocking.values()) done()
      for (const [key, answer] of locking) answer(locked.has(key))
    }
    this.#isWorking = false
  }
}

/**
 * Host and process, for rotate-key and status, which may not see the address of another login. PostgreSQL cuts names of
 * sessions at 63 bytes. The end of the host's own name tells replicas of a set apart.
 */
function processName(): string {
  const host = hostname()
    .split('.', 1)[0]!
    .replaceAll(/[^\w-]/g, '_')
    .slice(-24)
  return `${host}:${process.pid}`
}
