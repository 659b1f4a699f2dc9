/** Session-level advisory locks: which process delivers to which subscription. */
import type { ClientBase } from 'pg'

/** Locks those that no other session holds, and returns them. */
export async function lockSubscriptions(client: ClientBase, ids: string[]): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `select id from unnest($1::text[]) as id
     where pg_try_advisory_lock(hashtextextended('grandlivre subscription ' || id, 0))`,
    [ids],
  )
  return rows.map(({ id }) => id)
}

export async function unlockSubscriptions(client: ClientBase, ids: string[]): Promise<void> {
  await client.query(
    `select pg_advisory_unlock(hashtextextended('grandlivre subscription ' || id, 0)) from unnest($1::text[]) as id`,
    [ids],
  )
}

/**
 * Makes sure that no id of a delivery is given again after a crash of the database: deliveries do not wait for the disk, so
 * a crash may take their sequence back by what the last half second drew.
 */
export async function passDeliveryIds(client: ClientBase): Promise<void> {
  await client.query(`select count(*) from draw_several('delivery_ids', 10000)`)
}

/** Listens for the notifications of `publish`; the payload is a schema id. */
export async function listenForEvents(client: ClientBase): Promise<void> {
  await client.query('listen grandlivre_events')
}
