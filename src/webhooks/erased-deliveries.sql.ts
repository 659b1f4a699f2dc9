/** Stored deliveries with an event that was erased with its folder. The body of such a delivery is never sent again. */
import type { ClientBase } from 'pg'
import { queryCount, queryRows } from '../db/statement.ts'
import type { Delivery } from './dispatch/deliveries.sql.ts'
import type { DeliveryState } from './dispatch/delivery.ts'
import { replayNumbers } from './replay.ts'
import { eventsOfRun, selectRuns, sequenceInRun } from './sequence/numbered.sql.ts'

export interface StoredDelivery
  extends Pick<Delivery, 'schemaId' | 'id' | 'isReplay' | 'firstSequence' | 'lastSequence'> {
  subscriptionId: string
  state: DeliveryState
}

/**
 * Deletes a pending or failed delivery. If it was pending, its numbers are sent again without the erased events, as the
 * next batch or as replays. If it had failed, its numbers can be replayed. Call it with the subscription locked.
 */
export async function forgetDelivery(client: ClientBase, delivery: StoredDelivery): Promise<void> {
  const { schemaId, id, subscriptionId, state, isReplay, firstSequence, lastSequence } = delivery
  await client.query('delete from grandlivre.deliveries where schema_id = $1 and id = $2', [schemaId, id])
  if (state !== 'pending' || firstSequence === null || lastSequence === null) return
  if (isReplay) {
    await replayNumbers(client, subscriptionId, { first: firstSequence, last: lastSequence })
    return
  }
  await client.query(
    'update grandlivre.subscriptions set collected = $2::bigint - 1 where id = $1 and collected >= $2::bigint',
    [subscriptionId, firstSequence],
  )
}

/**
 * Finds which of the next deliveries of a schema show events of a folder. A cheap check first looks for any event of
 * the folder between the first and the last event of a delivery. An exact check then uses the runs of its numbers, with
 * the filters that applied to them.
 * @param kinds of the folder's events
 * @returns `last`: the last delivery that was examined; undefined if there are no more
 */
export async function deliveriesOfFolder(
  client: ClientBase,
  { schemaId, folderId }: { schemaId: string; folderId: string },
  kinds: string[],
  after: string,
  most: number,
): Promise<{ last: string | undefined; touched: StoredDelivery[] }> {
  const text = `with page as materialized (
       select d.* from deliveries d where d.schema_id = $1 and d.id > $4::bigint order by d.id limit $5
     ), near as materialized (
       select p.* from page p where exists (select from unnest($3::text[]) as kind cross join lateral (
         select from events e where (e.schema_id, e.folder_id, e.name) = ($1, $2, kind) and e.folder_id is not null
           and e.id between p.first_event and p.last_event limit 1) as hit)
     ), touched as materialized (
       select n.id from near n where n.first_sequence is null or exists (
         select from (
           select e.folder_id, ${sequenceInRun}
           from (
             ${selectRuns}
             where r.subscription_id = n.subscription_id and r.first_sequence <= n.last_sequence
               and r.last_sequence >= n.first_sequence) as r
           join ${eventsOfRun}) as numbered
         where numbered.folder_id = $2 and numbered.sequence between n.first_sequence and n.last_sequence)
     )
     select schema_id as "schemaId", id, subscription_id as "subscriptionId", state, is_replay as "isReplay",
       first_sequence::float8 as "firstSequence", last_sequence::float8 as "lastSequence",
       id in (select id from touched) as "isTouched", (select max(id) from page) as last
     from page order by id`
  const values = [schemaId, folderId, kinds, after, most]
  const rows = await queryRows<StoredDelivery & { last: string; isTouched: boolean }>(client, text, values)
  return { last: rows[0]?.last, touched: rows.filter(({ isTouched }) => isTouched) }
}

/** Deletes the stored responses to a delivery. @returns the number of attempts that had a response */
export function forgetAnswers(client: ClientBase, { schemaId, id }: StoredDelivery): Promise<number> {
  const text = `update grandlivre.delivery_attempts set answer = null
     where schema_id = $1 and delivery_id = $2 and answer is not null`
  return queryCount(client, text, [schemaId, id])
}
