/**
 * How late deliveries are: for metrics and their alert, for the console's chart, and for the console's page of a
 * subscription.
 */
import type { ClientBase } from 'pg'
import { lookUp, queryRow, queryValue } from '../db/statement.ts'
import { firstMatch, positions } from './sequence/numbering.sql.ts'
import { isOpen } from './subscriptions.sql.ts'

/**
 * Milliseconds that the statement may take. After that its connection is discarded: a server that hangs never ends a
 * statement.
 */
const answerMs = 2_000
/** Most subscriptions that are searched for events, and most schemas in all of them together. */
const searchedMax = 200

/**
 * CTEs that end with `waiting`: each delivery or event that waits for a subscription that receives, with the seconds
 * for which it has waited.
 *
 * A subscription has at most one pending delivery besides its replays. If it has none, the statement searches for its
 * next event, as dispatchers do: otherwise nothing would be late while no dispatcher works. Events that a reader has
 * asked for have numbers already. Then the time is that of the first or last event of their first run, which the index
 * finds: a run has at most 1,000 numbers. Only the subscriptions with the latest successes are searched: they are the
 * first to miss an event.
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
  /** Number of subscriptions by state. Failing ones are enabled, too, but are not counted as enabled. */
  enabled: number
  failing: number
  disabled: number
  suspended: number
  /**
   * How long the oldest delivery to a subscription that receives has waited; 0 if there is none. Includes events that
   * no dispatcher has collected.
   */
  oldestSeconds: number
  /** As `oldestSeconds`, for subscriptions whose receiver fails. */
  oldestFailingSeconds: number
}

/** Runs inside `whileDelivering`, or as the owner. */
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
