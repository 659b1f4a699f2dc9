/**
 * Runs one statement, in the caller's transaction or on any connection of a pool, and returns the part of its result
 * that callers need. Also has statements that limit their time or their plan, and statements that lock by keys.
 */
import type { ClientBase, Pool, QueryConfig, QueryResult, QueryResultRow } from 'pg'
import { limits } from '../config.ts'

export type Connection = ClientBase | Pool

/** The text of a statement. With a name, PostgreSQL keeps its plan. */
type Statement = string | QueryConfig

export async function queryRows<Row extends QueryResultRow>(
  connection: Connection,
  statement: Statement,
  values?: unknown[],
): Promise<Row[]> {
  const { rows } = await connection.query<Row>(statement, values)
  return rows
}

/** The first row; undefined if there are no rows. */
export async function queryRow<Row extends QueryResultRow>(
  connection: Connection,
  statement: Statement,
  values?: unknown[],
): Promise<Row | undefined> {
  const [row] = await queryRows<Row>(connection, statement, values)
  return row
}

/** The first column of the first row. If there may be no row, `Value` includes undefined. */
export async function queryValue<Value>(
  connection: Connection,
  statement: Statement,
  values?: unknown[],
): Promise<Value> {
  const row = await queryRow(connection, statement, values)
  return (row && Object.values(row)[0]) as Value
}

/** How many rows the statement returned or changed. */
export async function queryCount(connection: Connection, statement: Statement, values?: unknown[]) {
  const { rowCount } = await connection.query(statement, values)
  return rowCount ?? 0
}

/**
 * A look-up that every request or probe waits for. If the database keeps the connection but does not respond, as after
 * a network failure, the query fails after `limits.databaseConnectMs` and the connection is discarded.
 * @param query.waitMs replaces `limits.databaseConnectMs`
 */
export function lookUp({
  waitMs = limits.databaseConnectMs,
  ...query
}: {
  name?: string
  text: string
  values?: unknown[]
  waitMs?: number
}): QueryConfig {
  // pg accepts this timeout for a single query; its types declare it only for a whole connection.
  return { ...query, query_timeout: waitMs } as QueryConfig
}

/**
 * One statement in the caller's transaction, planned without some kinds of steps. A statement whose `limit` ends it
 * early is best planned without two of them: `seqscan` may first read the rows of all other folders, and `bitmapscan`
 * first collects all rows that match.
 * @param text the statement, without parameters: values in it come from literal.ts
 */
export async function queryWithout<Row extends QueryResultRow>(
  client: ClientBase,
  steps: ('seqscan' | 'bitmapscan' | 'sort')[],
  text: string,
): Promise<Row[]> {
  const settings = steps.map((step) => `enable_${step}`)
  const statements = [
    ...settings.map((name) => `set local ${name} = off`),
    text,
    ...settings.map((name) => `reset ${name}`),
  ]
  const results = await client.query(statements.join('; '))
  // The types of pg declare only messages with a single statement.
  return (results as unknown as QueryResult<Row>[])[steps.length]!.rows
}

/**
 * Takes advisory locks: those of `keys` that no other session holds, in order. Returns the keys that it locked. The
 * locks belong to the session until it unlocks them or ends. Keys are texts that are unique in the database. `keys`
 * must not include a lock that the session already holds, because PostgreSQL would grant it again. The lock is the only
 * condition of the statement, so keys are tried in order, and the statement ends once it has locked `most` of them.
 *
 * Both statements are named, so that PostgreSQL keeps their plans: 0.05 ms of the database instead of 0.11.
 * @param most how many keys to lock at most; if absent, all that are free
 */
export async function tryLocks(client: ClientBase, keys: string[], most?: number): Promise<string[]> {
  const rows = await queryRows<{ key: string }>(client, {
    name: 'try locks',
    text: `select key from unnest($1::text[]) as key
           where pg_try_advisory_lock(hashtextextended(key, 0)) limit $2`,
    values: [keys, most],
  })
  return rows.map(({ key }) => key)
}

export async function unlock(client: ClientBase, keys: string[]): Promise<void> {
  await client.query({
    name: 'unlock',
    text: 'select pg_advisory_unlock(hashtextextended(key, 0)) from unnest($1::text[]) as key',
    values: [keys],
  })
}
