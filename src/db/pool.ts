/**
 * Connections and transactions. Every connection of the service resolves names in the PostgreSQL schema `grandlivre`.
 * Inside `inTenant` it sees the rows of one tenant; outside, row-level security shows no row of any tenant.
 */
import { strict as assert } from 'node:assert'
import pg from 'pg'
import { limits } from '../config.ts'
import { type DatabaseOperation, databaseOperations } from '../telemetry/metrics.ts'
import type { ThreadedTelemetry } from '../telemetry/telemetry.ts'
import { type Address, asAddress } from './address.ts'
import { type Actor, checkConnection } from './check-connection.ts'
import { idLiteral } from './literal.ts'
import { errorClassOf, unavailable, unavailableIfMissing } from './outage.ts'

/** A rollback takes no longer than this: it is immediate in PostgreSQL, whatever it undoes. */
const rollbackMs = 1_000

/**
 * Keepalive for every lasting connection. Without it, if a load balancer or firewall drops idle connections, queries
 * hang for hours. Without the delay, Linux sends the first probe only after two hours.
 */
const keepAlive = { keepAlive: true, keepAliveInitialDelayMillis: 30_000 } as const

/**
 * Start-up options of every connection. Responses and files contain days as PostgreSQL prints them, and its
 * administrator may have set another date style.
 *
 * A session keeps its locks, and counts for max_connections, until the server notices that its client is gone. If the
 * client's machine or the network failed, nothing tells the server, and PostgreSQL would notice after two hours. With
 * these settings it notices after a minute, unless it is sending: then the kernel gives up after some fifteen minutes
 * (`net.ipv4.tcp_retries2`).
 */
export const ourSettings =
  '-c search_path=grandlivre -c datestyle=ISO ' +
  '-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3'

/**
 * The client of every pool. It listens for `error` as long as it lives, because a lost connection emits that event
 * whether a query runs or not; without a listener the process would end. The next query reports the loss to its caller.
 * The pool itself listens to idle connections only.
 */
class PooledClient extends pg.Client {
  readonly #telemetry: ThreadedTelemetry | undefined

  constructor(options?: pg.ClientConfig & { telemetry?: ThreadedTelemetry }) {
    super(options)
    this.on('error', () => {})
    this.#telemetry = options?.telemetry
  }

  // biome-ignore lint/suspicious/noExplicitAny: pg declares a dozen overloads, and this wraps the result of all
  override query(...statement: any[]): any {
    const telemetry = this.#telemetry
    const result = (super.query as (...args: unknown[]) => unknown).apply(this, statement)
    if (!telemetry || !(result instanceof Promise)) return result
    const began = performance.now()
    const ended = () =>
      telemetry.record('db.client.operation.duration', (performance.now() - began) / 1_000, {
        'db.operation.name': operationOf(statement[0]),
        'db.system.name': 'postgresql',
      })
    result.then(ended, ended)
    return result
  }
}

/** The first word of a statement. */
function operationOf(statement: string | { text?: string }): DatabaseOperation {
  const text = typeof statement === 'string' ? statement : (statement.text ?? '')
  const word = /^\s*(\w+)/.exec(text)?.[1]?.toLowerCase()
  return databaseOperations.find((known) => known === word) ?? 'other'
}

/**
 * The client of an address that may lead through a pooler. Its statements have no names: a named statement belongs to
 * one session, and each transaction may run in another session.
 */
class SharedSessionClient extends PooledClient {
  // biome-ignore lint/suspicious/noExplicitAny: the overloads of pg, passed on
  override query(config: any, ...others: any[]): any {
    const isNamed = typeof config?.name === 'string' && typeof config.submit !== 'function'
    const unnamed = isNamed ? { ...config, name: undefined } : config
    return (super.query as (...statement: unknown[]) => unknown)(unnamed, ...others)
  }
}

interface PoolOptions {
  /** Maximum of connections. Further callers wait up to `limits.databaseConnectMs`. */
  max: number
  /** Idle connections that stay open; others close after ten seconds. If absent, all of them close. */
  kept?: number
  /** How long a caller waits for a connection; by default `limits.databaseConnectMs`. */
  connectMs?: number
  /** Shown in pg_stat_activity, so that operators see which process holds a connection, and in metrics. */
  applicationName: string
  /**
   * How long a new connection may wait for its first answer; by default `limits.databaseConnectMs`. A pooler answers
   * only once it has a session for the connection.
   */
  firstAnswerMs?: number
  /**
   * How long each statement may take, so that a silent server does not hold its caller. If absent, there is no limit.
   */
  answerMs?: number
  telemetry?: ThreadedTelemetry
}

/** The pools that have telemetry, each with its name there. */
const observed = new WeakMap<pg.Pool, { name: string; telemetry: ThreadedTelemetry }>()

/** Counts an error of a connection or statement; any other error is not counted. */
export function countError(pool: pg.Pool, error: unknown): void {
  // The caller got no connection in time: none was free, or none could be opened. That is not a lost connection.
  const isLate = error instanceof Error && /^timeout ex|due to connection timeout$/.test(error.message)
  if (isLate) countTimeout(pool)
  const errorClass = isLate ? undefined : errorClassOf(error)
  if (errorClass !== undefined)
    observed.get(pool)?.telemetry.count('grandlivre.database.errors', { class: errorClass })
}

/** Counts a caller that got no connection in time. */
export function countTimeout(pool: pg.Pool): void {
  const { name, telemetry } = observed.get(pool) ?? {}
  if (name !== undefined)
    telemetry?.count('db.client.connection.timeouts', { 'db.client.connection.pool.name': name })
}

/**
 * A pool for requests and all other work of the service. Every connection runs as the service role; one that does not
 * is closed. Connections open on first use, so a wrong address fails at the first query, not here.
 */
export function createPool(address: Address | string, options: PoolOptions): pg.Pool {
  return createPoolFor('service', address, options)
}

/**
 * A pool for staff and imports. Its connections run as the owner of the tables, whom row-level security does not bind.
 */
export function createOwnerPool(url: string, options: PoolOptions): pg.Pool {
  return createPoolFor('owner', url, options)
}

function createPoolFor(actor: Actor, address: Address | string, options: PoolOptions): pg.Pool {
  const { applicationName: name, telemetry, answerMs, connectMs } = options
  const pool = new pg.Pool({
    ...pooledConnections(address, actor, name, options.firstAnswerMs),
    max: options.max,
    min: options.kept ?? 0,
    ...(answerMs !== undefined && { query_timeout: answerMs }),
    ...(telemetry && { telemetry }),
    ...(connectMs !== undefined && { connectionTimeoutMillis: connectMs }),
  })
  // If a connection fails while it is idle, the pool removes it and emits this event. Without a listener Node would end
  // the process.
  pool.on('error', (error) => countError(pool, error))
  if (!telemetry) return pool
  observed.set(pool, { name, telemetry })
  telemetry.watchPool(name, pool)
  return pool
}

/** Options of a pool whose connections are checked before use. A pool that a library creates takes them, too. */
export function pooledConnections(
  to: Address | string,
  actor: Actor,
  applicationName: string,
  firstAnswerMs?: number,
) {
  const address = asAddress(to)
  return {
    Client: address.isPooled ? SharedSessionClient : PooledClient,
    connectionString: withOurSettings(address, applicationName),
    connectionTimeoutMillis: limits.databaseConnectMs,
    verify: (client, done) => {
      checkConnection(client, { actor, isPooled: address.isPooled, waitMs: firstAnswerMs }).then(
        () => done(),
        done,
      )
    },
    ...keepAlive,
  } satisfies pg.PoolConfig
}

/** The value of `answerMs` for statements that may take as long as they need. */
export const noLimit = 0

/**
 * One connection outside any pool, to be opened by `connectSafely`.
 * @param answerMs how long each statement may take, so that it fails if the server is silent
 */
export function singleConnection(
  to: Address | string,
  applicationName: string,
  answerMs: number = limits.databaseConnectMs,
): pg.Client {
  return new pg.Client({
    connectionString: withOurSettings(asAddress(to), applicationName),
    connectionTimeoutMillis: limits.databaseConnectMs,
    query_timeout: answerMs,
    ...keepAlive,
  })
}

/**
 * The address with our application name instead of its own: `rotate-key` and `status` recognize our sessions by it.
 * Adds our settings, unless the address may lead through a pooler: that refuses start-up options, and the login brings
 * the settings.
 */
function withOurSettings({ url, isPooled }: Address, applicationName: string): string {
  const named = withParameters(url, (parameters) => parameters.set('application_name', applicationName))
  return isPooled ? named : withStartupOptions(named, ourSettings)
}

/** The address with further server options after its own. */
export function withStartupOptions(url: string, options: string): string {
  return withParameters(url, (parameters) =>
    parameters.set('options', [parameters.get('options'), options].filter(Boolean).join(' ')),
  )
}

/**
 * Changes the parameters of an address. What we set must be part of the address: in pg the parameters of an address
 * replace separate ones, so `-c role=...` and `-c search_path=...` would not both apply. Spaces become %20, not +,
 * which psql does not decode.
 */
function withParameters(url: string, change: (parameters: URLSearchParams) => void): string {
  const [address, query] = url.split('?', 2)
  const parameters = new URLSearchParams(query)
  change(parameters)
  return `${address}?${parameters.toString().replaceAll('+', '%20')}`
}

/** The statement that limits the rest of its transaction to the rows of one tenant. @param schemaId decimal digits */
export function setTenant(schemaId: string): string {
  return `set local grandlivre.schema_id = '${idLiteral(schemaId)}'`
}

/**
 * One transaction that sees and writes the rows of one tenant.
 * @param schemaId decimal digits
 * @throws {AppError} ERR-UNAVAILABLE if the database cannot be reached or the connection is lost
 */
export async function inTenant<T>(
  pool: pg.Pool,
  schemaId: string,
  run: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  // The id is part of the text, not a parameter: only a text of several statements begins the transaction and sets the
  // tenant in one round trip.
  return transaction(pool, `begin; ${setTenant(schemaId)}`, run)
}

/**
 * One statement on the rows of one tenant, in one round trip. PostgreSQL runs all statements of one message in one
 * transaction, so neither `begin` nor `commit` is sent.
 * @param text the statement, without parameters: values in it come from db/literal.ts
 * @throws {AppError} ERR-UNAVAILABLE like `inTenant`
 */
export async function askInTenant<Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  schemaId: string,
  text: string,
): Promise<Row[]> {
  try {
    const statements = `${setTenant(schemaId)}; ${text}`
    const results = await onConnection(pool, (client) => client.query(statements))
    // The types of pg declare only messages with a single statement.
    return (results as unknown as pg.QueryResult<Row>[])[1]!.rows
  } catch (error) {
    countError(pool, error)
    throw unavailableIfMissing(error)
  }
}

/**
 * One transaction without a tenant: for the owner, whom row-level security does not bind.
 * @throws {AppError} ERR-UNAVAILABLE like `inTenant`
 */
export function inTransaction<T>(pool: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  return transaction(pool, 'begin', run)
}

/**
 * One transaction that sees and writes the rows of all tenants that webhooks need (the policies `delivering` in
 * schema.sql). The dispatcher and the retention of events use it, and so do pings, for their secrets, once a
 * transaction of the tenant has checked who owns the subscription. Its commits do not wait for the disk: a crash of the
 * server loses a few tenths of a second of them. That work is then repeated, which deliveries allow.
 *
 * In two consecutive runs of `npm run bench -- webhooks` on a busy machine, one subscriber got 11,700 events a second
 * instead of 7,600, and the p99 of fifty subscribers was 278 ms instead of 458.
 * @throws {AppError} ERR-UNAVAILABLE like `inTenant`
 */
export function whileDelivering<T>(pool: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const begin = `begin; set local grandlivre.delivering = 'on'; set local synchronous_commit = off`
  return transaction(pool, begin, run)
}

/**
 * A connection of the pool. Return it with `release()`, or with `release(error)` if its state is unknown.
 * @throws {AppError} ERR-UNAVAILABLE if no connection is free in time
 */
export async function connect(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect()
  } catch (error) {
    countError(pool, error)
    throw unavailable(error)
  }
}

/**
 * Runs a function on one connection of the pool. If the function fails, the connection is closed, because its state is
 * unknown.
 * @throws {AppError} ERR-UNAVAILABLE if no connection is free in time
 */
export async function onConnection<T>(pool: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await connect(pool)
  try {
    const result = await run(client)
    client.release()
    return result
  } catch (error) {
    client.release(error as Error)
    throw error
  }
}

async function transaction<T>(
  pool: pg.Pool,
  begin: string,
  run: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await connect(pool)
  let broken: Error | undefined
  try {
    await client.query(begin)
    const result = await run(client)
    const { command } = await client.query('commit')
    // PostgreSQL answers a commit after a failed statement with a rollback, without an error.
    assert(command === 'COMMIT', 'the function continued after a statement of its transaction had failed')
    return result
  } catch (error) {
    countError(pool, error)
    broken = await rollBack(client)
    throw unavailableIfMissing(error)
  } finally {
    client.release(broken)
  }
}

/**
 * Rolls back the transaction. If that fails, returns the error, and the connection must be discarded, which also ends
 * its transaction: the connection is lost, or a COPY or cursor was left unfinished and a rollback would wait forever.
 */
export async function rollBack(client: pg.PoolClient): Promise<Error | undefined> {
  try {
    // pg accepts this timeout for a single query; its types declare it only for a whole connection.
    await client.query({ text: 'rollback', query_timeout: rollbackMs } as pg.QueryConfig)
    return undefined
  } catch (error) {
    return error instanceof Error ? error : new Error('The rollback failed', { cause: error })
  }
}
