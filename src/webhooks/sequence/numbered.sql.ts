/** Reads events by their numbers, whatever the state of their subscription. */
import type { ClientBase } from 'pg'
import { queryRows, queryValue } from '../../db/statement.ts'
import type { NumberedEvent } from '../body.ts'
import { isErased } from './numbering.sql.ts'

/**
 * The payload of an event, as the owner of the subscription `s` may read it. Some numbers belong to events of another
 * firm: those given before events had a firm, or by a process of the previous version. Such an event keeps its number,
 * but its scope and data show nothing of the other firm. An event without firm_id belongs to the firm in its scope,
 * which was recorded when the event was committed.
 */
const payload = `e.name, e.operation, (extract(epoch from e.created_at) * 1000)::float8 as "createdAt",
  case when h.heard then e.scope else json_build_object('schemaId', e.schema_id) end as scope,
  case when h.heard then e.data else '{}' end as data, ${isErased} as "isErased"`
const hearing = `subscriptions s on s.id = r.subscription_id cross join lateral (
  select (s.level <> 'firm' or s.firm_id = e.firm_id or e.firm_id = 0 or e.firm_id is null
    and coalesce((e.scope ->> 'firmId')::bigint = s.firm_id, e.folder_id is null)) is true as heard) as h`

/** The runs `r` of subscription `s`, each with what the subscription selected when the run was numbered. */
export const selectRuns = `select r.*, filter.on_events, filter.folder_ids
  from sequence_runs r
  join subscriptions s on s.id = r.subscription_id
  cross join lateral (
    select coalesce(f.on_events, s.on_events) as on_events, coalesce(f.folder_ids, s.folder_ids) as folder_ids
    from (select) as one
    left join lateral (
      select * from former_filters f
      where f.schema_id = s.schema_id and f.subscription_id = s.id and f.last_sequence >= r.last_sequence
      order by f.last_sequence limit 1) as f on true) as filter`

/** The events of the run `r`. `r` has the columns of its filter (`selectRuns`). */
export const eventsOfRun = `events e on e.schema_id = r.schema_id and e.id between r.first_event and r.last_event
  and selects(r.on_events, r.folder_ids, e.name, e.folder_id)`

/** The number of the event `e` in the run `r`. Counted from the end, because retention deletes from the beginning. */
export const sequenceInRun = `
  r.last_sequence + 1 - row_number() over (partition by r.first_sequence order by e.id desc) as sequence`

/**
 * Reads the events with numbers above `after` and up to `after + most`, ascending. The first ones are missing if
 * retention has deleted them.
 */
export function readNumbered(client: ClientBase, subscriptionId: string, after: number, most: number) {
  return queryRows<NumberedEvent>(client, {
    name: 'read-numbered',
    text: `with runs as materialized (
        ${selectRuns}
        where r.subscription_id = $1 and r.first_sequence <= $2::bigint + $3::int and r.first_sequence >= coalesce(
          (select max(first_sequence) from sequence_runs where subscription_id = $1 and first_sequence <= $2::bigint + 1),
          0)
      ), numbered as (
        select r.schema_id as "schemaId", e.id, r.epoch, ${payload}, ${sequenceInRun}
        from runs r join ${eventsOfRun} join ${hearing}
      )
      select "schemaId", id, epoch, sequence::float8, name, operation, scope, data, "createdAt", "isErased"
      from numbered n where n.sequence > $2 and n.sequence <= $2 + $3 order by n.sequence`,
    values: [subscriptionId, after, most],
  })
}

/**
 * Returns the first number after `after` whose event is still kept, or the next number to be given if no such event is
 * kept. (Retention sweeps each schema separately. So a subscription to all schemas may have lost events with higher
 * numbers than that.)
 */
export function oldestNumber(client: ClientBase, subscriptionId: string, after = 0) {
  const text = `with r as materialized (
       ${selectRuns}
       where r.subscription_id = $1 and r.last_sequence > $2
         and r.last_event >= (select min(e.id) from events e where e.schema_id = r.schema_id)
       order by r.first_sequence limit 1
     )
     select coalesce(
       (select greatest(max(r.last_sequence) + 1 - count(*), $2::bigint + 1) from r join ${eventsOfRun} having count(*) > 0),
       (select numbered + 1 from subscriptions where id = $1))::float8`
  return queryValue<number>(client, text, [subscriptionId, after])
}

/**
 * Finds the jump to a new epoch that begins right after the number `after`, or that skipped it. Returns the last number
 * that the jump skipped: the first event of the new epoch has the next number. Returns undefined if there is no such
 * jump, or if events between `after` and the jump are no longer kept.
 */
export function findJump(client: ClientBase, subscriptionId: string, after: number) {
  const text = `select next.first_sequence::float8 - 1
     from (select * from sequence_runs where subscription_id = $1 and first_sequence > $2
           order by first_sequence limit 1) as next
     where next.jumped_from <= $2`
  return queryValue<number | undefined>(client, text, [subscriptionId, after])
}

/** Counts the numbers above `after` that events have. Numbers that a jump skipped do not count. */
export function countNumbers(client: ClientBase, subscriptionId: string, after: number) {
  const text = `select coalesce(sum(last_sequence - greatest(first_sequence - 1, $2)), 0)::float8
     from sequence_runs where subscription_id = $1 and last_sequence > $2`
  return queryValue<number>(client, text, [subscriptionId, after])
}

/** The first and the last of consecutive numbers. */
export interface Numbers {
  first: number
  last: number
}

/** From `from` (inclusive) to `to` (exclusive), epoch milliseconds. */
export interface Span {
  from: number
  to: number
}

/** The numbers of the events that happened in a time span and are still there, ascending. */
export function numbersOfSpan(client: ClientBase, subscriptionId: string, { from, to }: Span) {
  const text = `with runs as materialized (
       ${selectRuns}
       join events last on last.schema_id = r.schema_id and last.id = r.last_event
       where r.subscription_id = $1 and last.created_at >= to_timestamp($2 / 1000.0)
     ), numbered as (
       select e.created_at, ${sequenceInRun}
       from runs r join ${eventsOfRun}
     ), spanned as (
       select sequence, sequence - row_number() over (order by sequence) as island
       from numbered
       where created_at >= to_timestamp($2 / 1000.0) and created_at < to_timestamp($3 / 1000.0)
     )
     select min(sequence)::float8 as first, max(sequence)::float8 as last from spanned group by island order by 1`
  return queryRows<Numbers>(client, text, [subscriptionId, from, to])
}
