/** How long the queue is, the clock of the database, and the bounds of statements for metrics. */
import type { ClientBase, QueryConfig } from 'pg'
import { exportQueue, queueSchema } from '../../db/migrations/queue-schema.ts'

/** After that the database ends a statement: a scrape that nobody waits for any more must not load it. */
const statementMs = 1_000
/**
 * After that the connection is given up: a server that is silent ends nothing. A slower answer says nothing of its clock.
 */
const answerMs = 2_000

/** Bounds the rest of a transaction. */
export async function boundStatements(client: ClientBase): Promise<void> {
  await client.query({
    text: `set local statement_timeout = ${statementMs}`,
    query_timeout: answerMs,
  } as QueryConfig)
}

export interface QueueStanding {
  /** Full exports that no process has claimed. */
  length: number
  /** Seconds for which the oldest of those that may be claimed has waited; 0 if there is none. A claim in vain counts. */
  ageSeconds: number
}

/** The entries that wait are in an index of their own. */
export async function readQueueStanding(client: ClientBase): Promise<QueueStanding> {
  const { rows } = await client.query<QueueStanding>({
    name: 'queue-standing',
    text: `select count(*)::int as length,
        coalesce(extract(epoch from now() - min(coalesce((data ->> 'since')::timestamptz, start_after))
          filter (where start_after <= now() or data ? 'since')), 0)::float8 as "ageSeconds"
      from ${queueSchema}.job
      where name = $1 and state < 'active' and not blocked`,
    values: [exportQueue],
    query_timeout: answerMs,
  } as QueryConfig)
  return rows[0]!
}

/** The clock of the database server, epoch milliseconds. */
export async function readClock(client: ClientBase): Promise<number> {
  const { rows } = await client.query<{ now: string }>({
    text: 'select extract(epoch from clock_timestamp()) * 1000 as now',
    query_timeout: answerMs,
  } as QueryConfig)
  return Number(rows[0]!.now)
}
