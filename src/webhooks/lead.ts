/**
 * The one connection of a dispatcher that lasts. On it the database tells of new events, and it holds an advisory lock
 * for each subscription that the process is serving: a process that is killed loses the connection and with it the
 * locks, at once and without leases or clocks. Like that of places it must lead to PostgreSQL itself.
 */
import pg from 'pg'
import { limits } from '../config.ts'
import { withStartupOptions } from '../db/pool.ts'
import { listenForEvents, lockSubscriptions, unlockSubscription } from './locks.sql.ts'

export class Lead {
  readonly #client: pg.Client
  #lost = false
  #turn: Promise<unknown> = Promise.resolve()

  private constructor(client: pg.Client) {
    this.#client = client
  }

  /**
   * @param told the id of a schema that has new events
   * @param lost the connection is gone, and the locks with it
   * @throws {Error} where the database is away
   */
  static async open(url: string, told: (schemaId: string) => void, lost: () => void): Promise<Lead> {
    const client = new pg.Client({
      connectionString: withStartupOptions(url, '-c search_path=grandlivre'),
      application_name: 'grandlivre dispatcher',
      connectionTimeoutMillis: limits.databaseConnectMs,
      query_timeout: limits.databaseConnectMs,
      keepAlive: true,
    })
    const lead = new Lead(client)
    const lose = () => {
      if (lead.#lost) return
      lead.#lost = true
      lost()
    }
    client.on('error', lose)
    client.on('end', lose)
    client.on('notification', ({ payload }) => told(payload ?? ''))
    try {
      await client.connect()
      await listenForEvents(client)
    } catch (error) {
      await lead.close()
      throw error
    }
    return lead
  }

  /** Whether the locks are lost. */
  get isLost(): boolean {
    return this.#lost
  }

  /** @returns those that no other process serves; locked until `unlock`, or the end of the connection */
  lock(subscriptionIds: string[]): Promise<string[]> {
    return this.#inTurn(() => lockSubscriptions(this.#client, subscriptionIds))
  }

  async unlock(subscriptionId: string): Promise<void> {
    if (this.#lost) return
    try {
      await this.#inTurn(() => unlockSubscription(this.#client, subscriptionId))
    } catch {
      // A connection that does not answer may hang rather than be dead. Ended, it holds no lock.
      await this.close()
    }
  }

  async close(): Promise<void> {
    this.#lost = true
    await this.#client.end().catch(() => {})
  }

  /** A connection runs one statement at a time. */
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(run)
    this.#turn = result.catch(() => {})
    return result
  }
}
