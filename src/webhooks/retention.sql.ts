/**
 * Deletes expired events with their numbers, and ended deliveries. When an event expires, each of its deliveries has
 * ended, and its subscriber has had weeks to read it or have it replayed: retries take three days, and a subscription
 * without a success for five days is disabled. Events that are still to be delivered are kept. The exceptions are
 * subscriptions that are disabled or only read, or whose third party is disconnected: their events first get numbers,
 * so that readers see a gap, and are then deleted. All statements run within `whileDelivering`. Times are epoch
 * milliseconds.
 */
import type { ClientBase, Pool, PoolClient } from 'pg'
import { limits } from '../config.ts'
import { whileDelivering } from '../db/pool.ts'
import { queryCount, queryRows } from '../db/statement.ts'
import { inParts } from '../db/sweeping.ts'
import { firstMatch, numberInParts, positions } from './sequence/numbering.sql.ts'
import { isOpen } from './subscriptions.sql.ts'

/** Rows per transaction. A transaction takes some tenths of a second, so others wait no longer for its locks. */
const rowsAtOnce = 10_000
const dayMs = 24 * 3_600_000

/** One sweep. @param database connects as the service role */
export async function sweepEvents(
  database: Pool,
  now: number,
  stopped?: AbortSignal,
): Promise<{ events: number; deliveries: number }> {
  const before = now - limits.eventRetentionDays * dayMs
  const swept = { events: 0, deliveries: 0 }
  // A part may delete few rows although more are left, so it is repeated until it deletes none.
  const all = (remove: (client: PoolClient) => Promise<number>) =>
    inParts(stopped, async () => (await whileDelivering(database, remove)) || undefined)
  for (const schemaId of await whileDelivering(database, listSchemas)) {
    // Events get their numbers before they are deleted: the next delivery or reader sees how many are gone.
    for (const id of await whileDelivering(database, (client) => findUnnumbered(client, schemaId, before))) {
      stopped?.throwIfAborted()
      await numberInParts((run) => whileDelivering(database, run), id)
    }
    swept.deliveries += await all((client) => deleteDeliveries(client, schemaId, before, rowsAtOnce))
    swept.events += await all((client) => deleteEvents(client, schemaId, before, rowsAtOnce))
    await all((client) => deleteRuns(client, schemaId, rowsAtOnce))
    await whileDelivering(database, (client) => deleteFormerFilters(client, schemaId))
  }
  return swept
}

async function listSchemas(client: ClientBase): Promise<string[]> {
  const rows = await queryRows<{ id: string }>(client, 'select schema_id as id from schemas order by 1')
  return rows.map(({ id }) => id)
}

/** Whether events are delivered to subscription `s` of third party `t`, and are therefore kept until then. */
const isDelivering = `s.enabled and s.post_url is not null and t.disconnected_at is null and ${isOpen}`

/**
 * Finds subscriptions to which nothing is delivered and that have events of a schema, from before that time, without a
 * number. Such events get their numbers before they are deleted.
 */
async function findUnnumbered(client: ClientBase, schemaId: string, before: number): Promise<string[]> {
  const text = `select s.id
     from subscriptions s
     join third_parties t on t.id = s.third_party_id
     cross join lateral ${positions}
     cross join lateral (select ${firstMatch} as id) as first
     join events e on e.schema_id = at.schema_id and e.id = first.id
     where at.schema_id = $1 and not (${isDelivering}) and e.created_at < to_timestamp($2 / 1000.0)`
  const rows = await queryRows<{ id: string }>(client, text, [schemaId, before])
  return rows.map(({ id }) => id)
}

/**
 * Deletes at most `most` of the oldest events of a schema that happened before that time. It deletes only events before
 * the first one that stays, because numbers are counted from the end of a run. Events without a number stay. So do
 * events that are still to be delivered, whatever their age: the service may just have been down.
 * @returns how many were deleted
 */
function deleteEvents(client: ClientBase, schemaId: string, before: number, most: number) {
  const text = `with needed as materialized (
       select min(least(${firstMatch}, undelivered.first_event)) as id
       from subscriptions s
       join third_parties t on t.id = s.third_party_id
       cross join lateral ${positions}
       left join lateral (
         -- A run has at most 1,000 numbers.
         select r.first_event from sequence_runs r
         where r.subscription_id = s.id and r.schema_id = at.schema_id and ${isDelivering}
           and r.first_sequence > s.collected - 1000 and r.last_sequence > s.collected
         order by r.first_sequence limit 1) as undelivered on true
       where at.schema_id = $1
     ), oldest as materialized (
       select id, created_at from events where schema_id = $1 order by id limit $3
     ), recent as materialized (
       select min(id) as id from oldest where created_at >= to_timestamp($2 / 1000.0)
     )
     delete from events e
     using oldest, needed, recent
     where e.schema_id = $1 and e.id = oldest.id and e.id < coalesce(least(needed.id, recent.id), e.id + 1)`
  return queryCount(client, text, [schemaId, before, most])
}

/**
 * Deletes runs of numbers whose events are all gone: at most `most`, and at most 1,000 of each subscription.
 * @returns how many were deleted
 */
function deleteRuns(client: ClientBase, schemaId: string, most: number) {
  const text = `with oldest as materialized (
       select min(id) as event from events where schema_id = $1
     ), emptied as materialized (
       select r.subscription_id, r.first_sequence
       from oldest cross join subscriptions s cross join lateral (
         select * from sequence_runs where schema_id = $1 and subscription_id = s.id
         order by first_sequence limit 1000
       ) as r
       where (s.schema_id is null or s.schema_id = $1)
         and (oldest.event is null or r.last_event < oldest.event)
       limit $2
     )
     delete from sequence_runs r using emptied
     where r.schema_id = $1 and r.subscription_id = emptied.subscription_id and r.first_sequence = emptied.first_sequence`
  return queryCount(client, text, [schemaId, most])
}

/** Deletes the record of what subscriptions selected before a change, if no number from before that change is left. */
async function deleteFormerFilters(client: ClientBase, schemaId: string): Promise<void> {
  const text = `delete from former_filters f using subscriptions s
     where f.schema_id = $1 and s.id = f.subscription_id and f.last_sequence < coalesce(
       (select min(r.first_sequence) from sequence_runs r where r.subscription_id = s.id), s.numbered + 1)`
  await client.query(text, [schemaId])
}

/**
 * Deletes at most `most` deliveries that ended before that time, with their attempts. Also deletes deliveries from
 * before that time that still wait, if nothing is delivered to their subscription.
 * @returns how many were deleted
 */
function deleteDeliveries(client: ClientBase, schemaId: string, before: number, most: number) {
  const text = `delete from deliveries d
     using (
       (select id, state from deliveries where schema_id = $1 and finished_at < to_timestamp($2 / 1000.0)
        order by finished_at limit $3)
       union all
       (select d.id, d.state from deliveries d join subscriptions s on s.id = d.subscription_id
           join third_parties t on t.id = s.third_party_id
        where d.schema_id = $1 and d.state = 'pending' and d.created_at < to_timestamp($2 / 1000.0)
          and not (${isDelivering})
        limit $3)
     ) as expired
     where d.schema_id = $1 and d.id = expired.id and d.state = expired.state`
  return queryCount(client, text, [schemaId, before, most])
}
