/**
 * Gives the events of a subscription their numbers: 1, 2, 3, ... in the order of delivery
 * (docs/spec/webhooks.md#sequence).
 *
 * The caller holds the lock of the subscription's row (`lockSubscription`), taken in an earlier statement, so it sees
 * what the previous holder numbered. The ids of a schema's events are in the order of their commits (`lock_events`), so
 * no event can appear before a position that has been passed. The numbers of a single schema depend only on the events
 * and on the changes of the filter. So if a crash loses a transaction of the dispatcher (`whileDelivering`), the lost
 * numbers are given again, each to the same event.
 *
 * A promoted server may lack the last events, although others have seen their numbers. So numbers jump where the epoch
 * changes (`beyondLost`), which tells subscribers that they may lack something. In a single schema, the remaining
 * events of the former epoch get their numbers before the jump: the same numbers that they had. For all schemas
 * together, the order of numbers is the order in which they were given. A lost server may have been the only one to
 * know that order, so there the jump comes before any other number.
 */
import type { ClientBase } from 'pg'
import { queryRow, queryRows, queryValue } from '../../db/statement.ts'
import { idMax } from '../../events/events.sql.ts'
import type { NumberedEvent } from '../body.ts'

/**
 * Whether the owner of the subscription `s` may hear of the event `e`. A firm's token hears of its own firm, and of
 * events that name neither a firm nor a folder (docs/spec/webhooks.md#subscriptions).
 */
const isHeard = `(s.level <> 'firm' or e.firm_id in (0, s.firm_id)) is true`

/** Whether the event `e` is for the subscription `s`. */
export const isForSubscription = `selects(s.on_events, s.folder_ids, e.name, e.folder_id) and ${isHeard}`

/**
 * The first event for a subscription after its position `at.position` in the schema `at.schema_id`. Takes one index
 * probe per kind (and per folder, if the subscription names folders), however many events lie between. After a folder
 * has moved to another firm, the probe of a firm's subscription passes over the folder's events in the other firm.
 *
 * A probe takes the next row in index order and then checks its kind. If it asked for the kind directly, the planner
 * would scan all events by id whenever its statistics know only one kind, as after an import.
 */
export const firstMatch = `least(
  (select min(hit.id) from unnest(s.on_events) as kind cross join lateral (
     select e.schema_id, e.name, e.id from events e
     where s.folder_ids = '{}' and s.level <> 'firm' and (e.schema_id, e.name, e.id) > (at.schema_id, kind, at.position)
     order by e.schema_id, e.name, e.id limit 1) as hit
   where hit.schema_id = at.schema_id and hit.name = kind),
  (select min(hit.id) from unnest(s.on_events) as kind cross join unnest(s.folder_ids) as folder cross join lateral (
     select e.schema_id, e.folder_id, e.name, e.id from events e
     where e.folder_id is not null
       and (e.schema_id, e.folder_id, e.name, e.id) > (at.schema_id, folder, kind, at.position)
       and (e.schema_id, e.folder_id, e.name, e.id) <= (at.schema_id, folder, kind, ${idMax}) and ${isHeard}
     order by e.schema_id, e.folder_id, e.name, e.id limit 1) as hit),
  (select min(hit.id) from unnest(s.on_events) as kind cross join unnest(array[0, s.firm_id]) as firm cross join lateral (
     select e.schema_id, e.firm_id, e.name, e.id from events e
     where s.folder_ids = '{}' and s.level = 'firm' and e.firm_id is not null
       and (e.schema_id, e.firm_id, e.name, e.id) > (at.schema_id, firm, kind, at.position)
     order by e.schema_id, e.firm_id, e.name, e.id limit 1) as hit
   where hit.schema_id = at.schema_id and hit.firm_id = firm and hit.name = kind))`

/**
 * The position of a subscription `s` in each of its schemas: the last event up to which all events have numbers.
 * `offset 0` makes the position a plain column. Without it, PostgreSQL treats coalesce() as a function that might leak
 * rows, and compares ids only after row-level security, without the index: 11 seconds instead of 1 ms for fifty
 * subscriptions at the end of 470,000 events.
 */
export const positions = `(
  select c.schema_id, coalesce(p.position, s.start_position) as position
  from schemas c
  left join subscription_positions p on p.schema_id = c.schema_id and p.subscription_id = s.id
  where c.schema_id = s.schema_id or s.schema_id is null
  offset 0) as at`

/**
 * Whether the event `e` was erased with its folder, or is about to be. An erased event keeps its number, and is no
 * longer sent or shown.
 */
export const isErased = `(e.data::text = 'null' or coalesce(e.folder_id = any ((select erased_folders())::bigint[]), false))`

/** Payload, for `NumberedEvent`, of an event that the owner of the subscription may hear of. */
const payload = `e.name, e.operation, e.scope, e.data, ${isErased} as "isErased",
  (extract(epoch from e.created_at) * 1000)::float8 as "createdAt"`

/**
 * The last number that the jump to an epoch skips. It is beyond all numbers that a lost server may have given: two
 * million for each second since 2026, as in `beyond_lost`. For a single schema, the time is that of the event `e`, so
 * that the number stays the same if a crash loses the dispatcher's transaction. The number of the epoch is added, so
 * that servers whose clocks differ a little jump to different numbers. It adds less than 500,000, a quarter of a
 * second: the successor of a server that is lost as well begins later, and subscribers must never see lower numbers
 * than before.
 */
const timed = `floor(2000000 * extract(epoch from
    case when s.schema_id is null then clock_timestamp() else e.created_at end - '2026-01-01 00:00Z'))::bigint
  + given.epoch % 500000`
/**
 * `timed`, or a larger number if the numbers given so far are ahead of the time: after two epochs within a second, or
 * after a failover by an older version.
 */
const beyondLost = `case when ${timed} > s.numbered + 1000000 then ${timed} else s.numbered + 4000000000 end`

/**
 * Numbers the first `$3` matches among the next `$2` events of one schema, beginning with its first match and ending
 * where the epoch changes. The schema is the one whose first match has the lowest id. A run also ends before an event
 * that the kinds and folders select but the owner may not hear of: the numbers of a run are counted by kinds and
 * folders alone, as in versions without firms. Events of several schemas have no common order of commits, so the order
 * of their numbers must outlive a crash: that commit waits for the disk. A known cost: where events of two firms
 * alternate, each event begins a run. A column sequence_runs.firm_id would let a run pass over events that its firm may
 * not hear of.
 */
const numbering = (columns: string, until = '') => `
  first as materialized (
    select at.schema_id, ${firstMatch} as id
    from subscriptions s cross join lateral ${positions}
    where s.id = $1
    order by 2 limit 1
  ), start as materialized (
    select e.schema_id, e.id, e.epoch as committed_in, given.epoch, case given.epoch
        when s.epoch then s.numbered else ${beyondLost} end as numbered,
      case when given.epoch <> s.epoch then s.numbered end as jumped_from
    from first join events e on (e.schema_id, e.id) = (first.schema_id, first.id)
    join subscriptions s on s.id = $1
    cross join lateral (select case when s.schema_id is null then pass_gate()::integer else e.epoch end as epoch) as given
  ), matched as materialized (
    select m.*, m.numbered + row_number() over (order by m.id) as sequence
    from (
      select e.schema_id, e.id, start.numbered, start.epoch, start.jumped_from, ${isHeard} as heard,
        count(*) filter (where not (${isHeard})) over (order by e.id) as unheard${columns}
      from start cross join lateral (
        select * from events where schema_id = start.schema_id and id >= start.id order by id limit $2
      ) as e
      join subscriptions s on s.id = $1
      where selects(s.on_events, s.folder_ids, e.name, e.folder_id) and e.epoch = start.committed_in ${until}
    ) as m
    where m.heard order by m.id limit $3
  ), run as (
    insert into sequence_runs
      (schema_id, subscription_id, epoch, first_sequence, last_sequence, first_event, last_event, jumped_from)
    select schema_id, $1, epoch, min(sequence), max(sequence), min(id), max(id),
      case min(sequence) when numbered + 1 then jumped_from end
    from matched group by schema_id, epoch, unheard, (sequence - 1) / 1000, numbered, jumped_from
  ), moved as (
    insert into subscription_positions (schema_id, subscription_id, position)
    select schema_id, $1, max(id) from matched group by schema_id
    on conflict (schema_id, subscription_id) do update set position = excluded.position
  ), counted as (
    update subscriptions s set numbered = last.sequence, epoch = start.epoch
    from start, (select max(sequence) as sequence from matched) as last
    where s.id = $1 and last.sequence is not null
    returning case when s.schema_id is null then set_config('synchronous_commit', 'on', true) end
  )`

/** How many events of a schema are read to find those to deliver next. */
const deliveryWindow = 1_000
/** How many events are read when many are numbered at once. That takes some hundredths of a second. */
const wideWindow = 10_000

/**
 * Locks the subscription until the transaction ends, and passes the gate (`pass_gate`): on a server that took the place
 * of another, that begins a new epoch before any number is given.
 */
export async function lockSubscription(client: ClientBase, subscriptionId: string): Promise<void> {
  await client.query({
    name: 'lock-subscription',
    text: 'select pass_gate() from subscriptions where id = $1 for no key update',
    values: [subscriptionId],
  })
}

/**
 * Returns the last number of a subscription, the present epoch, whether there are events without a number, and whether
 * a delivery waits for a retry. A reader may have a later number than the last one: from a server that is lost. The
 * statement then passes the gate, so that the reader learns of the new epoch.
 * @param after the number that the reader has
 */
export async function readNumbering(client: ClientBase, subscriptionId: string, after: number) {
  const numbering = await queryRow<{
    numbered: number
    epoch: number
    isBehind: boolean
    isRetried: boolean
  }>(client, {
    name: 'read-numbering',
    text: `select s.numbered::float8 as numbered,
        (case when $2::bigint > s.numbered then pass_gate() else pg_sequence_last_value('epoch') end)::integer as epoch,
        exists (select from ${positions} where ${firstMatch} is not null) as "isBehind",
        s.enabled and s.post_url is not null and exists (select from deliveries d
          where d.subscription_id = s.id and d.state = 'pending' and not d.is_replay and d.next_attempt_at > now()
          offset 0) as "isRetried"
      from subscriptions s where s.id = $1`,
    values: [subscriptionId, after],
  })
  return numbering!
}

/**
 * Numbers at most `most` of the next events, all of one schema, and returns them; empty if there are none. Call it
 * after `lockSubscription`.
 */
export function numberNext(client: ClientBase, subscriptionId: string, most: number) {
  return queryRows<NumberedEvent>(client, {
    name: 'number-next',
    text: `with ${numbering(`, ${payload}`)}
      select schema_id as "schemaId", id, epoch, sequence::float8, name, operation, scope, data, "createdAt", "isErased"
      from matched order by id`,
    values: [subscriptionId, deliveryWindow, most],
  })
}

/**
 * Numbers the next events without reading them, as long as an event up to `until` has no number. The bound is there
 * because others may commit events faster than the caller numbers them. Call it after `lockSubscription`.
 * @returns how many were numbered; 0 if every committed event up to `until` has its number
 */
function numberMore(client: ClientBase, subscriptionId: string, until: string): Promise<number> {
  return queryValue(client, {
    name: 'number-more',
    text: `with ${numbering('', 'and start.id <= $4')} select count(*)::int from matched`,
    values: [subscriptionId, wideWindow, wideWindow, until],
  })
}

/**
 * Numbers all events that were committed before the call, ten thousand at a time. Each part is a transaction of its
 * own, so the lock of the subscription is held, and its deliveries wait, for only some hundredths of a second.
 * @param transact runs one transaction that can see the subscription; `(run) => run(client)` runs all parts in one
 */
export async function numberInParts<Client extends ClientBase>(
  transact: (run: (client: Client) => Promise<number>) => Promise<number>,
  subscriptionId: string,
): Promise<void> {
  let until: string | undefined
  const numberPart = async (client: Client) => {
    await lockSubscription(client, subscriptionId)
    until ??= await queryValue<string>(client, 'select grandlivre.latest_event(null)')
    return numberMore(client, subscriptionId, until)
  }
  while ((await transact(numberPart)) > 0);
}

/**
 * Numbers all committed events of the schema of a locked subscription, and moves the position to the last event, whether
 * it matches or not. So what the subscription selects from now on applies only to events that are committed later. If
 * the schema has no events, it does nothing.
 */
export async function numberAll(client: ClientBase, subscriptionId: string, schemaId: string): Promise<void> {
  // The last id is read first: an event that is committed while the others are numbered is either numbered or left for
  // later.
  const text = 'select max(id) from events where schema_id = $1'
  const latest = await queryValue<string | null>(client, text, [schemaId])
  if (latest === null) return
  await numberInParts((run) => run(client), subscriptionId)
  await client.query(
    `insert into subscription_positions (schema_id, subscription_id, position) values ($2, $1, $3)
     on conflict (schema_id, subscription_id) do update
       set position = greatest(subscription_positions.position, excluded.position)`,
    [subscriptionId, schemaId, latest],
  )
}
