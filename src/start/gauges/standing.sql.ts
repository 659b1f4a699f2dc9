/** How far the queue and deliveries are behind, for metrics. */
import type { ClientBase } from 'pg'
import { exportQueue, queueSchema } from '../../db/migrations/queue-schema.ts'

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
  })
  return rows[0]!
}

export interface DeliveryStanding {
  /** Subscriptions; failing ones are enabled, too, and counted once. */
  enabled: number
  failing: number
  disabled: number
  /** Age of the oldest pending delivery to a subscription that may receive; 0 if there is none. */
  oldestSeconds: number
}

/** For metrics, inside `whileDelivering`. A subscription has one pending delivery besides its replays. */
export async function readDeliveryStanding(client: ClientBase): Promise<DeliveryStanding> {
  const { rows } = await client.query<DeliveryStanding>({
    name: 'delivery-standing',
    text: `select count(*) filter (where enabled and failing_since is null)::int as enabled,
        count(*) filter (where enabled and failing_since is not null)::int as failing,
        count(*) filter (where not enabled)::int as disabled,
        coalesce((
          select extract(epoch from now() - min(d.created_at))
          from deliveries d
          join subscriptions s on s.id = d.subscription_id and s.enabled and s.post_url is not null
          join third_parties t on t.id = s.third_party_id and t.disconnected_at is null
          where d.state = 'pending'
        ), 0)::float8 as "oldestSeconds"
      from subscriptions`,
  })
  return rows[0]!
}
