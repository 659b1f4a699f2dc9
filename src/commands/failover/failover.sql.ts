/** Statements of a failover, as the owner. */
import type { ClientBase } from 'pg'
import { firstMatch, positions } from '../../webhooks/sequence/numbering.sql.ts'

/** What a sequence had given out, and what it counts as given out now. The epoch is one of them. */
export interface Moved {
  name: string
  last: string
  beyond: string
}

/** Seen by all at once, and not undone with the transaction, which does no harm. */
export async function beginEpoch(client: ClientBase): Promise<Moved[]> {
  const { rows } = await client.query<Moved>('select * from begin_epoch(true)')
  return rows
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

/**
 * The next event of each subscription gets a number far beyond its last one. What is left to deliver stays so.
 * @returns how many
 */
export async function skipNumbers(client: ClientBase): Promise<number> {
  const { rowCount } = await client.query(
    `update subscriptions s
     set collected = case when s.collected = s.numbered then given.last else s.collected end, numbered = given.last
     from (select id, beyond_lost(numbered, clock_timestamp()) as last from subscriptions offset 0) as given
     where s.id = given.id`,
  )
  return rowCount ?? 0
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
  await client.query(`select pg_notify('grandlivre_firms', id::text) from firms`)
  await client.query(`select pg_notify('grandlivre_events', schema_id::text) from schemas`)
}
