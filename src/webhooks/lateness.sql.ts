/** How late deliveries are: for metrics and their alert, for the chart of the console, and for one subscription there. */
import type { ClientBase } from 'pg'
import { lookUp, queryRow, queryValue } from '../db/statement.ts'
import { firstMatch, positions } from './sequence/numbering.sql.ts'
import { isOpen } from './subscriptions.sql.ts'

/** How long the statement may take; then its connection is given up: a silent server ends no statement. */
const answerMs = 2_000
/** How many subscriptions are searched for events, and how many schemas of all of them together. */
const searchedMax = 200

/**
 * CTEs up to `waiting`: what waits for subscriptions that receive, each with its subscription and the seconds that it waits.
 *
 * A subscription has one pending delivery besides its replays. Without one, its next event is searched, as dispatchers
 * do: otherwise nothing would be late while no dispatcher works. For events that have numbers already, because a reader
 * asked for them, the time is that of the first or last event of their first run, found in the index: a run has at most
 * 1,000 numbers. The search is bounded to the subscriptions that received something last, which miss it first.
 *
 * The time begins with the last success of the subscription if that is later: a receiver that works through old events
 * is not late.
 * @param condition on the subscription `s`
 */
const lateDeliveries = (condition: string) => `receiving as materialized (
    select s.* from subscriptions s
    join third_parties t on t.id = s.third_party_id and t.disconnected_at is null
    where s.enabled and s.post_url is not null and ${isOpen} ${condition}
  ), searched as materialized (
    select * from receiving s
    where not exists (
      select from deliveries d where d.subscription_id = s.id and d.state = 'pending' and not d.is_replay offset 0)
    order by s.last_success_at desc nulls last limit ${searchedMax}
  ), numbered as materialized (
    select s.id as subscription_id, r.schema_id, r.event_id
    from searched s cross join lateral (
      select schema_id, case when first_sequence > s.collected then first_event else last_event end as event_id
      from sequence_runs
      where subscription_id = s.id and last_sequence > s.collected and first_sequence > s.collected - 1000
        and s.numbered > s.collected
      order by first_sequence limit 1
    ) as r
  ), unnumbered as materialized (
    select s.id as subscription_id, at.schema_id, ${firstMatch} as event_id
    from searched s cross join lateral ${positions}
    limit ${searchedMax}
  ), unsent as (
    select d.subscription_id, d.created_at from deliveries d
    where d.state = 'pending' and d.subscription_id in (select id from receiving)
    union all
    select u.subscription_id, e.created_at
    from (select * from numbered union all select * from unnumbered) as u
    cross join lateral (
      select created_at from events where schema_id = u.schema_id and id = u.event_id limit 1
    ) as e
  ), waiting as (
    select s.id as subscription_id, s.failing_since is not null as failing,
      extract(epoch from now() - greatest(w.created_at, s.last_success_at))::float8 as seconds
    from unsent w join receiving s on s.id = w.subscription_id
  )`

interface DeliveryHealth {
  /** Subscriptions; failing ones are enabled, too, and counted once. */
  enabled: number
  failing: number
  disabled: number
  suspended: number
  /**
   * How long the oldest delivery waits to a subscription that receives; 0 if there is none. An event that no dispatcher
   * has collected counts, too.
   */
  oldestSeconds: number
  /** The same of subscriptions whose receiver fails. */
  oldestFailingSeconds: number
}

/** Inside `whileDelivering`, or as the owner. */
export async function readDeliveryHealth(client: ClientBase): Promise<DeliveryHealth> {
  const health = await queryRow<DeliveryHealth>(
    client,
    lookUp({
      name: 'delivery-health',
      text: `with ${lateDeliveries('')}
        select count(*) filter (where enabled and open and failing_since is null)::int as enabled,
          count(*) filter (where enabled and open and failing_since is not null)::int as failing,
          count(*) filter (where not enabled)::int as disabled,
          count(*) filter (where enabled and not open)::int as suspended,
          coalesce((select max(seconds) from waiting where not failing), 0) as "oldestSeconds",
          coalesce((select max(seconds) from waiting where failing), 0) as "oldestFailingSeconds"
        from (select s.*, ${isOpen} as open from subscriptions s) as s`,
      waitMs: answerMs,
    }),
  )
  return health!
}

/** How late the deliveries of one subscription are, in seconds; undefined if nothing is to be sent to it. */
export async function readLateness(client: ClientBase, subscriptionId: string): Promise<number | undefined> {
  const text = `with ${lateDeliveries('and s.id = $1')} select max(seconds) from waiting`
  return (await queryValue<number | null>(client, text, [subscriptionId])) ?? undefined
}
