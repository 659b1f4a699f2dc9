/** How far the queue and deliveries are behind, for metrics. */
import type { ClientBase, QueryConfig } from 'pg'
import { exportQueue, queueSchema } from '../../db/migrations/queue-schema.ts'
import { firstMatch, positions } from '../../webhooks/sequence/numbering.sql.ts'

/** After that the database ends a statement: a scrape that nobody waits for any more must not load it. */
const statementMs = 1_000
/** After that the connection is given up: a server that is silent ends nothing. */
const answerMs = 2_000
/** Subscriptions that are searched for events, and at most so many of their schemas. */
const searchedMax = 200

/** Bounds the rest of a transaction. */
export async function boundStatements(client: ClientBase): Promise<void> {
  await client.query({
    text: `set local statement_timeout = ${statementMs}`,
    query_timeout: answerMs,
  } as QueryConfig)
}

export interface QueueStanding {
  /** Full exports that no process has claimed. */
  length: number
  /** Seconds for which the oldest of those that may be claimed has waited; 0 if there is none. */
  ageSeconds: number
}

/** For metrics. The entries that wait are in an index of their own. */
export async function readQueueStanding(client: ClientBase): Promise<QueueStanding> {
  const { rows } = await client.query<QueueStanding>({
    name: 'queue-standing',
    text: `select count(*)::int as length,
        coalesce(extract(epoch from now() - min(start_after) filter (where start_after <= now())), 0)::float8
          as "ageSeconds"
      from ${queueSchema}.job
      where name = $1 and state < 'active' and not blocked`,
    values: [exportQueue],
    query_timeout: answerMs,
  } as QueryConfig)
  return rows[0]!
}

export interface DeliveryStanding {
  /** Subscriptions; failing ones are enabled, too, and counted once. */
  enabled: number
  failing: number
  disabled: number
  /**
   * How long the oldest delivery waits to a subscription that receives; 0 if there is none. An event that no dispatcher
   * has collected counts, too. The time begins with the last success of the subscription if that is later: a receiver
   * that works through old events is not late.
   */
  oldestSeconds: number
  /** The same of subscriptions whose receiver fails. */
  oldestFailingSeconds: number
}

/**
 * For metrics, inside `whileDelivering`. A subscription has one pending delivery besides its replays. Without one, its
 * next event is searched, as dispatchers do: otherwise nothing would be late while no dispatcher works. The search is
 * bounded to the subscriptions that received something last, which miss it first.
 */
export async function readDeliveryStanding(client: ClientBase): Promise<DeliveryStanding> {
  const { rows } = await client.query<DeliveryStanding>({
    name: 'delivery-standing',
    text: `with receiving as materialized (
        select s.* from subscriptions s
        join third_parties t on t.id = s.third_party_id and t.disconnected_at is null
        where s.enabled and s.post_url is not null
      ), searched as materialized (
        select * from receiving s
        where not exists (
          select from deliveries d where d.subscription_id = s.id and d.state = 'pending' and not d.is_replay offset 0)
        order by s.last_success_at desc nulls last limit ${searchedMax}
      ), uncollected as materialized (
        select s.id as subscription_id, at.schema_id, ${firstMatch} as event_id
        from searched s cross join lateral ${positions}
        limit ${searchedMax}
      ), waiting as (
        select d.subscription_id, d.created_at from deliveries d where d.state = 'pending'
        union all
        select u.subscription_id, e.created_at from uncollected u
        cross join lateral (
          select created_at from events where schema_id = u.schema_id and id = u.event_id limit 1
        ) as e
      ), late as (
        select s.failing_since is not null as failing,
          extract(epoch from now() - min(greatest(w.created_at, s.last_success_at)))::float8 as seconds
        from waiting w join receiving s on s.id = w.subscription_id
        group by 1
      )
      select count(*) filter (where enabled and failing_since is null)::int as enabled,
        count(*) filter (where enabled and failing_since is not null)::int as failing,
        count(*) filter (where not enabled)::int as disabled,
        coalesce((select seconds from late where not failing), 0) as "oldestSeconds",
        coalesce((select seconds from late where failing), 0) as "oldestFailingSeconds"
      from subscriptions`,
    query_timeout: answerMs,
  } as QueryConfig)
  return rows[0]!
}
