/** Statements of a failover, run as the owner of the tables. */
import type { ClientBase } from 'pg'

/** A sequence that a failover moves, such as the epoch: its last value, and the value after which it continues. */
export interface Moved {
  name: string
  last: string
  beyond: string
}

/** Begins a new epoch. Every session sees it at once. A rollback does not undo it, which does no harm. */
export async function beginEpoch(client: ClientBase): Promise<Moved[]> {
  const { rows } = await client.query<Moved>('select * from begin_epoch(true)')
  return rows
}

/** Wakes every waiting request, so that it compares again. */
export async function notifyAll(client: ClientBase): Promise<void> {
  await client.query(`select pg_notify('grandlivre_ledgers', id::text) from folders`)
  await client.query(`select pg_notify('grandlivre_firms', id::text) from firms`)
  await client.query(`select pg_notify('grandlivre_events', schema_id::text) from schemas`)
}
