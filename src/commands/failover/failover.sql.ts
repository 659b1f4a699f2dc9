/** Statements of a failover, as the owner. */
import type { ClientBase } from 'pg'
import { firstMatch, positions } from '../../webhooks/sequence/numbering.sql.ts'

/** Makes other failovers wait. @returns the epoch, and the clock of the server in epoch milliseconds */
export async function lockEpoch(client: ClientBase): Promise<{ epoch: number; now: number }> {
  const { rows } = await client.query<{ epoch: number; now: number }>(
    `select epoch::float8 as epoch, extract(epoch from clock_timestamp())::float8 * 1000 as now
     from service_state for update`,
  )
  return rows[0]!
}

export async function setEpoch(client: ClientBase, epoch: number): Promise<void> {
  await client.query('update service_state set epoch = $1', [epoch])
}

/** Every sequence of the service. @returns the last value that each gave out, or 0 */
export async function readSequences(client: ClientBase): Promise<{ name: string; last: string }[]> {
  const { rows } = await client.query<{ name: string; last: string }>(
    `select sequencename as name, coalesce(last_value, 0)::text as last
     from pg_sequences where schemaname = 'grandlivre' order by 1`,
  )
  return rows
}

/** Not undone with the transaction, which does no harm. */
export async function moveSequence(client: ClientBase, name: string, last: bigint): Promise<void> {
  await client.query(`select setval(format('grandlivre.%I', $1::text)::regclass, $2)`, [name, String(last)])
}

/** Until the transaction ends, no event gets a number. */
export async function lockAllSubscriptions(client: ClientBase): Promise<void> {
  await client.query('select from subscriptions order by id for no key update')
}

/** Subscriptions of one schema with events that have no number yet. To be called after `lockAllSubscriptions`. */
export async function findBehind(client: ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `select s.id from subscriptions s
     where s.schema_id is not null and exists (select from ${positions} where ${firstMatch} is not null)
     order by s.id`,
  )
  return rows.map(({ id }) => id)
}

/** The last number of each subscription. */
export async function readNumbers(client: ClientBase): Promise<{ id: string; numbered: string }[]> {
  const { rows } = await client.query<{ id: string; numbered: string }>(
    'select id, numbered::text from subscriptions order by id',
  )
  return rows
}

/** The next event of each subscription gets the number after this one. What is left to deliver stays so. */
export async function skipNumbers(
  client: ClientBase,
  skipped: readonly { id: string; last: bigint }[],
): Promise<void> {
  await client.query(
    `update subscriptions s
     set collected = case when s.collected = s.numbered then given.last else s.collected end, numbered = given.last
     from unnest($1::bigint[], $2::bigint[]) as given (id, last) where s.id = given.id`,
    [skipped.map(({ id }) => id), skipped.map(({ last }) => String(last))],
  )
}

/**
 * From now until the transaction ends, no full export is triggered, claimed, renewed or ended. Waits for those
 * transactions that have begun to. They lock the events of their schema afterwards (`publish`), as a failover does. With
 * locks of single rows, one could hold an export for which the failover waits while it holds those events.
 *
 * A claim that waits for this reads the cursor of its ledger afterwards, with the new epoch.
 */
export async function lockExports(client: ClientBase): Promise<void> {
  await client.query('lock table exports in share row exclusive mode')
}

/** Full exports that processes work on, in the order in which their events are written. */
export async function findRunning(client: ClientBase) {
  const { rows } = await client.query<{ schemaId: string; exportId: string; requestId: string }>(
    `select schema_id as "schemaId", id as "exportId", request_id as "requestId" from exports
     where state = 'running' order by schema_id, id`,
  )
  return rows
}

/** From now on every trigger starts a new full export. @returns how many answered triggers before */
export async function retireExports(client: ClientBase): Promise<number> {
  const { rowCount } = await client.query('update exports set latest = false where latest')
  return rowCount ?? 0
}

/** Wakes every waiting request, so that it compares again. */
export async function notifyAll(client: ClientBase): Promise<void> {
  await client.query(`select pg_notify('grandlivre_ledgers', id::text) from folders`)
  await client.query(`select pg_notify('grandlivre_events', schema_id::text) from schemas`)
}
