/** Slots for running requests, as advisory locks of one session. Names are unique in the database. */
import type { ClientBase } from 'pg'

/**
 * Takes the first place that no other session holds; the session's own it would take again, so they must not be asked
 * for. The lock is the only condition: rows are tried in order, and the first that succeeds ends the statement.
 */
export async function lockOneSlot(client: ClientBase, names: string[]): Promise<string | undefined> {
  const { rows } = await client.query<{ name: string }>(
    `select name from unnest($1::text[]) as name
     where pg_try_advisory_lock(hashtextextended('grandlivre place ' || name, 0)) limit 1`,
    [names],
  )
  return rows[0]?.name
}

/** Takes all of these that no other session holds. */
export async function lockSlots(client: ClientBase, names: string[]): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select name from unnest($1::text[]) as name
     where pg_try_advisory_lock(hashtextextended('grandlivre place ' || name, 0))`,
    [names],
  )
  return rows.map(({ name }) => name)
}

export async function unlockSlot(client: ClientBase, name: string): Promise<void> {
  await client.query(`select pg_advisory_unlock(hashtextextended('grandlivre place ' || $1, 0))`, [name])
}
