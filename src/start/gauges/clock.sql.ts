import type { ClientBase } from 'pg'

/** The clock of the database server, epoch milliseconds. */
export async function readClock(client: ClientBase): Promise<number> {
  const { rows } = await client.query<{ now: string }>(
    'select extract(epoch from clock_timestamp()) * 1000 as now',
  )
  return Number(rows[0]!.now)
}
