/**
 * Connections and transactions. Every connection of the service reads names in the PostgreSQL schema `grandlivre`
 * and, inside `inTenant`, sees the rows of one tenant; outside it row-level security shows no tenant's row at all.
 */
import { strict as assert } from 'node:assert'
import pg from 'pg'
import { limits } from '../config.ts'
import { type Actor, checkConnection } from './check-connection.ts'
import { isId } from './id.ts'
import { idLiteral } from './literal.ts'
import { unavailable, unavailableIfMissing } from './outage.ts'

/** A rollback takes PostgreSQL no time, whatever it undoes. */
const rollbackMs = 1_000

/**
 * Of every connection that is kept. A load balancer or firewall that drops quiet connections would otherwise leave
 * queries hanging for hours; without the delay Linux asks for the first time after two.
 */
export const keepAlive = { keepAlive: true, keepAliveInitialDelayMillis: 30_000 } as const

/** Days go as PostgreSQL prints them into answers and files, and its administrator may have set another style. */
export const ourSettings = '-c search_path=grandlivre -c datestyle=ISO'

export interface PoolOptions {
  /** Connections at most. A caller beyond waits up to `limits.databaseConnectMs`. */
  max: number
  /** Connections that stay open when nobody needs them; the others are closed after ten seconds. Absent: none. */
  kept?: number
  /** Shown in pg_stat_activity, so that an operator can tell who holds a connection. */
  applicationName: string
}

/**
 * For requests and all other work of the service: every connection acts as the service role, or is closed. Connections
 * are opened when they are first needed: a wrong address shows at the first query, not here.
 */
export function createPool(url: string, options: PoolOptions): pg.Pool {
  return createPoolFor('service', url, options)
}

/** For staff and imports, as the owner of the tables, whom row-level security does not bind. */
export function createOwnerPool(url: string, options: PoolOptions): pg.Pool {
  return createPoolFor('owner', url, options)
}

function createPoolFor(actor: Actor, url: string, options: PoolOptions): pg.Pool {
  const pool = new pg.Pool({
    ...pooledConnections(url, actor),
    max: options.max,
    min: options.kept ?? 0,
    application_name: options.applicationName,
  })
  // A connection that dies while idle is removed by the pool itself. Without a listener Node would end the process.
  pool.on('error', () => {})
  return pool
}

/** How a pool opens its connections, each checked before it is used. Also for a pool that a library makes. */
export function pooledConnections(url: string, actor: Actor) {
  return {
    connectionString: withStartupOptions(url, ourSettings),
    connectionTimeoutMillis: limits.databaseConnectMs,
    verify: (client, done) => {
      checkConnection(client, actor).then(() => done(), done)
    },
    ...keepAlive,
  } satisfies pg.PoolConfig
}

/**
 * The address with further server options behind those it has. They must stand in the address: pg lets the
 * `options` of an address replace those given beside it, so `-c role=...` and `-c search_path=...` would not add up.
 * Spaces become %20 and not +, which psql does not decode.
 */
export function withStartupOptions(url: string, options: string): string {
  const [address, query] = url.split('?', 2)
  const parameters = new URLSearchParams(query)
  parameters.set('options', [parameters.get('options'), options].filter(Boolean).join(' '))
  return `${address}?${parameters.toString().replaceAll('+', '%20')}`
}

/**
 * One transaction that sees and writes the rows of one tenant.
 * @param schemaId decimal digits
 * @throws {AppError} ERR-UNAVAILABLE where the database cannot be reached or goes away meanwhile
 */
export async function inTenant<T>(
  pool: pg.Pool,
  schemaId: string,
  run: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  // The id stands in the text, not in a parameter, because only a text of several statements begins the transaction
  // and names the tenant in one round trip.
  assert(isId(schemaId), 'a tenant is named by its id')
  return transaction(pool, `begin; set local grandlivre.schema_id = '${schemaId}'`, run)
}

/**
 * One statement on the rows of one tenant, in one round trip: PostgreSQL takes statements that come in one message for
 * one transaction, so neither `begin` nor `commit` is sent.
 * @param text takes no parameters: every value in it goes through db/literal.ts
 * @throws {AppError} ERR-UNAVAILABLE as `inTenant`
 */
export async function askInTenant<Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  schemaId: string,
  text: string,
): Promise<Row[]> {
  const client = await connect(pool)
  // As in `transaction`.
  const ignore = () => {}
  client.on('error', ignore)
  let broken: Error | undefined
  try {
    const results = await client.query(`set local grandlivre.schema_id = '${idLiteral(schemaId)}'; ${text}`)
    // The types of pg know only messages of one statement.
    return (results as unknown as pg.QueryResult<Row>[])[1]!.rows
  } catch (error) {
    broken = error as Error
    throw unavailableIfMissing(error)
  } finally {
    client.off('error', ignore)
    client.release(broken)
  }
}

/**
 * One transaction without a tenant: for the owner, whom row-level security does not bind.
 * @throws {AppError} ERR-UNAVAILABLE as `inTenant`
 */
export function inTransaction<T>(pool: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  return transaction(pool, 'begin', run)
}

/**
 * One transaction that sees and writes what webhooks need of all tenants (migration 0004): for the dispatcher, and for
 * the retention of events. Never for a request. Its commits do not wait for the disk: what a crash of the server takes
 * back of them, some tenths of a second, is done again, which deliveries allow.
 *
 * In two runs of `npm run bench:webhooks`, one after the other on a busy machine, that was 11,700 events a second to one
 * subscriber instead of 7,600, and a p99 of 278 ms instead of 458 with fifty.
 * @throws {AppError} ERR-UNAVAILABLE as `inTenant`
 */
export function whileDelivering<T>(pool: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  return transaction(
    pool,
    `begin; set local grandlivre.delivering = 'on'; set local synchronous_commit = off`,
    run,
  )
}

/**
 * A connection of the pool, to be given back by `release()`, or by `release(error)` when its state is not known.
 * @throws {AppError} ERR-UNAVAILABLE where none is to be had in time
 */
export async function connect(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect()
  } catch (error) {
    throw unavailable(error)
  }
}

async function transaction<T>(
  pool: pg.Pool,
  begin: string,
  run: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await connect(pool)
  // Between two queries nobody else listens, and an unheard `error` of a dying connection would end the process.
  const ignore = () => {}
  client.on('error', ignore)
  let broken: Error | undefined
  try {
    await client.query(begin)
    const result = await run(client)
    const { command } = await client.query('commit')
    // PostgreSQL answers a commit after a failed statement with a rollback, and calls that no error.
    assert(command === 'COMMIT', 'the function went on after a statement of its transaction had failed')
    return result
  } catch (error) {
    broken = await rollBack(client)
    throw unavailableIfMissing(error)
  } finally {
    client.off('error', ignore)
    client.release(broken)
  }
}

/**
 * Gives the error for which the connection has to be discarded, which ends its transaction just as well: it is gone,
 * or a COPY or cursor was left in the middle, behind which a rollback would wait forever.
 */
async function rollBack(client: pg.PoolClient): Promise<Error | undefined> {
  try {
    // pg knows this timeout for a single query, its types only for all queries of a connection.
    await client.query({ text: 'rollback', query_timeout: rollbackMs } as pg.QueryConfig)
    return undefined
  } catch (error) {
    return error instanceof Error ? error : new Error('The rollback failed', { cause: error })
  }
}
