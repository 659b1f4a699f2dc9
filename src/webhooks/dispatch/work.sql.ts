/** Finds subscriptions with something to send. Each statement runs inside `whileDelivering`. */
import type { ClientBase } from 'pg'
import { queryRows, queryValue } from '../../db/statement.ts'
import { firstMatch, positions } from '../sequence/numbering.sql.ts'
import { isOpen } from '../subscriptions.sql.ts'
import type { Search } from './rounds.ts'
import type { Candidate } from './slots.ts'

/**
 * A subscription that has something to send. Or the next subscription to examine, if its third party has more of them
 * than a search examines.
 */
export interface Work extends Omit<Candidate, 'isSlow'> {
  /** Whether its last delivery failed. */
  failing: boolean
  /** False if it was not examined: the next search of its third party begins with it. */
  examined: boolean
}

/**
 * Finds subscriptions with something to send now, among the first `most` of each third party. `offset 0` makes
 * PostgreSQL read the deliveries per subscription; otherwise it would read all pending ones.
 * @param now epoch milliseconds
 * @param most subscriptions to examine per third party
 */
export function findWork(client: ClientBase, now: number, { schemaIds, rounds, whom }: Search, most: number) {
  return queryRows<Work>(client, {
    name: `find-work-of-${whom}`,
    text: `with round as materialized (
        select * from unnest($3::bigint[], $4::bigint[]) as round (third_party_id, next_id)
      ), candidates as materialized (
        select * from (
          select s.*, row_number() over (partition by s.third_party_id order by s.id) as place
          from subscriptions s
          join third_parties t on t.id = s.third_party_id and t.disconnected_at is null
          ${whoseSubscriptions[whom]}
            and s.enabled and s.post_url is not null and ($2::bigint[] is null or s.schema_id is null or s.schema_id = any ($2))
        ) as s where place <= $5::int + 1
      )
      select s.id as "subscriptionId", s.third_party_id as "thirdPartyId", s.schema_id as "schemaId",
        s.failing_since is not null as failing, place <= $5::int as examined
      from candidates s
      where place > $5::int
        or (exists (
          select from deliveries d
          where d.subscription_id = s.id and d.state = 'pending' and d.next_attempt_at <= to_timestamp($1 / 1000.0)
          offset 0)
        or not exists (
          select from deliveries d where d.subscription_id = s.id and d.state = 'pending' and not d.is_replay
          offset 0)
        and (s.collected < s.numbered or exists (
          select from ${positions}
          where ($2::bigint[] is null or at.schema_id = any ($2)) and ${firstMatch} is not null)))
        and ${isOpen}`,
    values: [now, schemaIds, [...rounds.keys()], [...rounds.values()], most],
  })
}

const whoseSubscriptions = {
  own: 'join round r on r.third_party_id = s.third_party_id where s.id >= r.next_id',
  others: 'where s.third_party_id not in (select third_party_id from round)',
} satisfies Record<Search['whom'], string>

/**
 * Moves subscriptions that are far behind and have nothing to receive to the newest event; otherwise every search would
 * read the same events again. Also moves disabled subscriptions: their events are read by number, or collected when
 * they are enabled.
 * @param from the first subscription
 * @returns the first of the remaining subscriptions; undefined if none is left
 */
export async function movePositions(client: ClientBase, from: string, most: number) {
  const text = `with part as materialized (
       select id, row_number() over (order by id) as place
       from (select id from subscriptions where id >= $1 order by id limit $2::int + 1) as s
     ), behind as materialized (
       select s.id, at.schema_id, newest.id as position
       from part p
       join subscriptions s on s.id = p.id
       cross join lateral ${positions}
       cross join lateral (select max(e.id) as id from events e where e.schema_id = at.schema_id) as newest
       where p.place <= $2::int and newest.id > at.position + 1000 and ${firstMatch} is null
       for no key update of s skip locked
     ), moved as (
       insert into subscription_positions (schema_id, subscription_id, position)
       select schema_id, id, position from behind
       on conflict (schema_id, subscription_id) do update
         set position = greatest(subscription_positions.position, excluded.position)
     )
     select max(id) filter (where place > $2::int) from part`
  const next = await queryValue<string | null>(client, text, [from, most])
  return next ?? undefined
}

/**
 * Third parties and schemas of the retries that became due between these two times (epoch milliseconds). A new delivery
 * is due when it is stored, and is sent at once without this search.
 */
export function findDue(client: ClientBase, after: number, until: number) {
  return queryRows<{ thirdPartyId: string; schemaId: string | null }>(client, {
    name: 'find-due',
    text: `select distinct s.third_party_id as "thirdPartyId", s.schema_id as "schemaId"
      from deliveries d join subscriptions s on s.id = d.subscription_id
      where d.state = 'pending' and d.attempts > 0
        and d.next_attempt_at > to_timestamp($1 / 1000.0) and d.next_attempt_at <= to_timestamp($2 / 1000.0)`,
    values: [after, until],
  })
}

/** Time of the next retry that is not due yet, in epoch milliseconds; undefined if there is none. */
export async function nextRetryAt(client: ClientBase, now: number): Promise<number | undefined> {
  const at = await queryValue<number | null>(client, {
    name: 'next-retry',
    text: `select extract(epoch from min(next_attempt_at))::float8 * 1000 from deliveries
      where state = 'pending' and attempts > 0 and next_attempt_at > to_timestamp($1 / 1000.0)`,
    values: [now],
  })
  return at ?? undefined
}

/**
 * Makes sure that the id of a delivery is never given twice, even after a crash of the database. Deliveries do not wait
 * for the disk, so a crash may set their sequence back to where it was half a second earlier.
 */
export async function passDeliveryIds(client: ClientBase): Promise<void> {
  await client.query(`select count(*) from draw_several('delivery_ids', 10000)`)
}

/** Listens for the notifications of `publish`; the payload is a schema id. */
export async function listenForEvents(client: ClientBase): Promise<void> {
  await client.query('listen grandlivre_events')
}
