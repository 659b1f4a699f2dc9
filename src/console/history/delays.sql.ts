import type { Pool } from 'pg'

/** Seconds for which the oldest has waited; 0 if none does. */
export interface Delays {
  queuedExport: number
  /** Of the deliveries of enabled subscriptions that are due, or wait for their next attempt. */
  delivery: number
}

/** Of all tenants, as the owner. */
export async function readDelays(owner: Pool): Promise<Delays> {
  const { rows } = await owner.query<Delays>(
    `select
       (select coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float8
        from exports where state = 'queued') as "queuedExport",
       (select coalesce(extract(epoch from clock_timestamp() - min(d.created_at)), 0)::float8
        from deliveries d join subscriptions s on s.id = d.subscription_id and s.enabled
        where d.state = 'pending') as delivery`,
  )
  return rows[0]!
}
