import type { ClientBase, Pool } from 'pg'

/** Seconds for which the oldest has waited; 0 if none does. */
export interface Delays {
  queuedExport: number
  /** Of the deliveries that are due, or wait for their next attempt, to subscriptions that receive. */
  delivery: number
}

/** Of all tenants, as the owner. */
export async function readDelays(owner: ClientBase | Pool): Promise<Delays> {
  const { rows } = await owner.query<Delays>(
    `select
       (select greatest(extract(epoch from clock_timestamp() - min(created_at)), 0)::float8
        from exports where state = 'queued') as "queuedExport",
       (select greatest(extract(epoch from clock_timestamp() - min(d.created_at)), 0)::float8
        from deliveries d
        join subscriptions s on s.id = d.subscription_id and s.enabled and s.post_url is not null
        join third_parties t on t.id = s.third_party_id and t.disconnected_at is null
        where d.state = 'pending') as delivery`,
  )
  return rows[0]!
}
