/** Statements of `rotate-key`, as the owner. */
import type { ClientBase } from 'pg'

/** Where secrets are stored, and how each is named for staff. */
export const sealedTables = {
  third_party_secrets: `(select 'partner ' || p.code from grandlivre.third_parties p where p.id = third_party_id)`,
  signing_secrets: `'subscription ' || subscription_id`,
}
export type SealedTable = keyof typeof sealedTables

/**
 * Keeps writers of secrets, of all processes, waiting until the transaction ends (`sealing_key`). Gives up before PostgreSQL
 * would look for a deadlock, which could end a request instead of this transaction.
 */
export async function lockOutWriters(client: ClientBase): Promise<void> {
  await client.query(`set local lock_timeout = '500ms'`)
  await client.query(`select pg_advisory_xact_lock(hashtextextended('grandlivre sealing', 0))`)
}

/** @returns false if it was written before */
export async function writeNextKey(client: ClientBase, fingerprint: Buffer): Promise<boolean> {
  const { rowCount } = await client.query(
    `insert into grandlivre.next_key as n (fingerprint) values ($1)
     on conflict (one) do update set fingerprint = excluded.fingerprint where n.fingerprint <> excluded.fingerprint`,
    [fingerprint],
  )
  return rowCount === 1
}

export async function nameKey(client: ClientBase, fingerprint: Buffer): Promise<void> {
  await client.query('update grandlivre.adopted_key set fingerprint = $1', [fingerprint])
  await client.query('delete from grandlivre.next_key')
}

/** How many blocks of 8 KB a table has. */
export async function countBlocks(client: ClientBase, table: SealedTable): Promise<number> {
  const { rows } = await client.query<{ blocks: number }>(
    `select (pg_relation_size('grandlivre.${table}') / current_setting('block_size')::integer)::integer as blocks`,
  )
  return rows[0]!.blocks
}

/** An encrypted secret, and its row at this moment. */
export interface Sealed {
  place: string
  sealed: Buffer
  name: string
}

/** The secrets in blocks of a table, from the first and before the last. */
export async function readSealed(client: ClientBase, table: SealedTable, first: number, last: number) {
  const { rows } = await client.query<Sealed>(
    `select ctid::text as place, secret_encrypted as sealed, ${sealedTables[table]} as name from grandlivre.${table}
     where ctid >= format('(%s,0)', $1::integer)::tid and ctid < format('(%s,0)', $2::integer)::tid
       and secret_encrypted <> ''`,
    [first, last],
  )
  return rows
}

/**
 * Replaces encrypted secrets by others. Skips rows that others have locked or changed: waiting for them while holding locks
 * could deadlock.
 * @returns how many it replaced
 */
export async function replaceSealed(
  client: ClientBase,
  table: SealedTable,
  replaced: { place: string; sealed: Buffer; replacement: Buffer }[],
): Promise<number> {
  const places = replaced.map(({ place }) => place)
  const { rows } = await client.query<{ place: string }>(
    `select ctid::text as place from grandlivre.${table} where ctid = any ($1::tid[]) for no key update skip locked`,
    [places],
  )
  const locked = new Set(rows.map(({ place }) => place))
  const ours = replaced.filter(({ place }) => locked.has(place))
  const { rowCount } = await client.query(
    `update grandlivre.${table} t set secret_encrypted = n.replacement
     from unnest($1::tid[], $2::bytea[], $3::bytea[]) n(place, sealed, replacement)
     where t.ctid = n.place and t.secret_encrypted = n.sealed`,
    [
      ours.map(({ place }) => place),
      ours.map(({ sealed }) => sealed),
      ours.map(({ replacement }) => replacement),
    ],
  )
  return rowCount ?? 0
}
