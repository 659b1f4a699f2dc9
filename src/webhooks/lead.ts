/**
 * The one connection of a dispatcher that lasts. On it the database tells of new events, and it holds an advisory lock
 * for each subscription that the process is serving: a process that is killed loses the connection and with it the
 * locks, at once and without leases or clocks. Like that of places it must lead to PostgreSQL itself.
 */
import pg from 'pg'
import { limits } from '../config.ts'
import { connectSafely } from '../db/check-connection.ts'
import { keepAlive, ourSettings, withStartupOptions } from '../db/pool.ts'
import { listenForEvents, lockSubscriptions, unlockSubscription } from './locks.sql.ts'

export class Lead {
  readonly #client: pg.Client
  readonly #lost = Promise.withResolvers<void>()
  #isLost = false
  #turn: Promise<unknown> = Promise.resolve()

  private constructor(client: pg.Client) {
    this.#client = client
  }

  /**
   * @param told the id of a schema that has new events
   * @throws {Error} where the database is away
   */
  static async open(url: string, told: (schemaId: string) => void): Promise<Lead> {
    const client = new pg.Client({
      connectionString: withStartupOptions(url, ourSettings),
      application_name: 'grandlivre dispatcher',
      connectionTimeoutMillis: limits.databaseConnectMs,
      query_timeout: limits.databaseConnectMs,
      ...keepAlive,
    })
    const lead = new Lead(client)
    client.on('error', () => lead.#lose())
    client.on('end', () => lead.#lose())
    client.on('notification', ({ payload }) => told(payload ?? ''))
    try {
      await connectSafely(client, 'service')
      await listenForEvents(client)
    } catch (error) {
      await lead.close()
      throw error
    }
    return lead
  }

  /** Whether the connection is gone, and the locks with it. */
  get isLost(): boolean {
    return this.#isLost
  }

  /** When it is. */
  get lost(): Promise<void> {
    return this.#lost.promise
  }

  /**
   * @returns those that no other process serves; locked until `unlock`, or the end of the connection
   * @throws {Error} where the connection is lost
   */
  lock(subscriptionIds: string[]): Promise<string[]> {
    return this.#inTurn(() => lockSubscriptions(this.#client, subscriptionIds))
  }

  async unlock(subscriptionId: string): Promise<void> {
    if (this.#isLost) return
    // Where it fails, the connection has ended, and it holds no lock.
    await this.#inTurn(() => unlockSubscription(this.#client, subscriptionId)).catch(() => {})
  }

  async close(): Promise<void> {
    this.#lose()
    await this.#client.end().catch(() => {})
  }

  #lose(): void {
    this.#isLost = true
    this.#lost.resolve()
  }

  /** A connection runs one statement at a time. One that does not answer may hang rather than be dead: it is ended. */
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(run)
    this.#turn = result.catch(() => this.close())
    return result
  }
}
