/** Keys and sessions of the console. All run as the owner of the tables. */
import type { ClientBase, Pool } from 'pg'

/** Returns false if a key in use has this name. */
export async function insertKey(client: ClientBase, name: string, hash: Buffer): Promise<boolean> {
  const { rowCount } = await client.query(
    `insert into console_keys (name, key_hash) values ($1, $2)
     on conflict (name) where revoked_at is null do nothing`,
    [name, hash],
  )
  return rowCount === 1
}

export interface ListedKey {
  name: string
  createdAt: Date
  usedAt: Date | null
  revokedAt: Date | null
}

/** Newest first. */
export async function listKeys(client: ClientBase): Promise<ListedKey[]> {
  const { rows } = await client.query<ListedKey>(
    `select name, created_at as "createdAt", used_at as "usedAt", revoked_at as "revokedAt"
     from console_keys order by id desc`,
  )
  return rows
}

/** Ends its sessions, too. Returns false if no key in use has this name. */
export async function revokeKey(client: ClientBase, name: string): Promise<boolean> {
  const { rowCount } = await client.query(
    `with revoked as (
       update console_keys set revoked_at = now() where name = $1 and revoked_at is null returning id
     ), ended as (
       delete from console_sessions where key_id in (select id from revoked)
     )
     select from revoked`,
    [name],
  )
  return rowCount === 1
}

/** Whether a key in use has this hash. Without a transaction. */
export async function findKey(owner: Pool, hash: Buffer): Promise<boolean> {
  const { rowCount } = await owner.query(
    'select from console_keys where key_hash = $1 and revoked_at is null',
    [hash],
  )
  return rowCount === 1
}

/**
 * Begins a session, and forgets those that have expired.
 * @returns the name of the key; undefined if no key in use has this hash
 */
export async function insertSession(
  client: ClientBase,
  { keyHash, sessionHash, lifeMs }: { keyHash: Buffer; sessionHash: Buffer; lifeMs: number },
): Promise<string | undefined> {
  await client.query('delete from console_sessions where expires_at <= clock_timestamp()')
  const { rows } = await client.query<{ name: string }>(
    `with used as (
       update console_keys set used_at = now() where key_hash = $1 and revoked_at is null returning id, name
     ), begun as (
       insert into console_sessions (session_hash, key_id, expires_at)
       select $2, id, clock_timestamp() + $3 * interval '1 millisecond' from used
     )
     select name from used`,
    [keyHash, sessionHash, lifeMs],
  )
  return rows[0]?.name
}

/** The name of the key whose session this is; undefined if it has ended. */
export async function findSession(owner: Pool, sessionHash: Buffer): Promise<string | undefined> {
  const { rows } = await owner.query<{ name: string }>(
    `select k.name from console_sessions s join console_keys k on k.id = s.key_id
     where s.session_hash = $1 and s.expires_at > clock_timestamp() and k.revoked_at is null`,
    [sessionHash],
  )
  return rows[0]?.name
}

export async function deleteSession(client: ClientBase, sessionHash: Buffer): Promise<void> {
  await client.query('delete from console_sessions where session_hash = $1', [sessionHash])
}
