/** Which process serves which subscription: advisory locks of one session each. */
import type { ClientBase } from 'pg'

/** Takes those that no other session holds. */
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

/** Of `publish`; what is told is the id of a schema. */
export async function listenForEvents(client: ClientBase): Promise<void> {
  await client.query('listen grandlivre_events')
}
