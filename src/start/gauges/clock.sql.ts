import type { ClientBase, QueryConfig } from 'pg'

/** A slower answer says nothing of the clock, and the connection is one of requests. */
const answerMs = 2_000

/** The clock of the database server, epoch milliseconds. */
export async function readClock(client: ClientBase): Promise<number> {
  const { rows } = await client.query<{ now: string }>({
    text: 'select extract(epoch from clock_timestamp()) * 1000 as now',
    query_timeout: answerMs,
  } as QueryConfig)
  return Number(rows[0]!.now)
}
