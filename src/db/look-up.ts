import type pg from 'pg'
import type { QueryConfig } from 'pg'
import { limits } from '../config.ts'

/**
 * A look-up that every request or probe waits for. If the database keeps the connection but does not respond, as after
 * a network failure, the query fails after `limits.databaseConnectMs` and the connection is discarded.
 * @param query.waitMs replaces that limit
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
 * One statement in the caller's transaction, planned without some kinds of steps. What a limit ends early is best read
 * without any: `seqscan` may first read the rows of all other folders, `bitmapscan` first collects all rows that match.
 * @param text has no parameters: values in it come from literal.ts
 */
export async function queryWithout<Row extends pg.QueryResultRow>(
  client: pg.ClientBase,
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
  // The types of pg declare only messages of one statement.
  return (results as unknown as pg.QueryResult<Row>[])[steps.length]!.rows
}
