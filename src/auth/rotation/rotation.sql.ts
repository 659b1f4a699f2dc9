/** Statements of `rotate-key`, as the owner. */
import type { ClientBase } from 'pg'
import { queryCount, queryRows, queryValue } from '../../db/statement.ts'

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
  const text = `insert into grandlivre.next_key as n (fingerprint) values ($1)
     on conflict (one) do update set fingerprint = excluded.fingerprint where n.fingerprint <> excluded.fingerprint`
  return (await queryCount(client, text, [fingerprint])) === 1
}

export async function nameKey(client: ClientBase, fingerprint: Buffer): Promise<void> {
  await client.query('update grandlivre.adopted_key set fingerprint = $1', [fingerprint])
  await client.query('delete from grandlivre.next_key')
}

/** How many blocks of 8 KB a table has. */
export function countBlocks(client: ClientBase, table: SealedTable) {
  const text = `select (pg_relation_size('grandlivre.${table}') / current_setting('block_size')::integer)::integer`
  return queryValue<number>(client, text)
}

/** The encrypted secrets in blocks of a table, from the first and before the last, each with the place of its row. */
export function readSealed(client: ClientBase, table: SealedTable, first: number, last: number) {
  return queryRows<{ place: string; sealed: Buffer; name: string }>(
    client,
    `select ctid::text as place, secret_encrypted as sealed, ${sealedTables[table]} as name from grandlivre.${table}
     where ctid >= format('(%s,0)', $1::integer)::tid and ctid < format('(%s,0)', $2::integer)::tid
       and secret_encrypted <> ''`,
    [first, last],
  )
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
  const rows = await queryRows<{ place: string }>(
    client,
    `select ctid::text as place from grandlivre.${table} where ctid = any ($1::tid[]) for no key update skip locked`,
    [replaced.map(({ place }) => place)],
  )
  const locked = new Set(rows.map(({ place }) => place))
  const ours = replaced.filter(({ place }) => locked.has(place))
  return queryCount(
    client,
    `update grandlivre.${table} t set secret_encrypted = n.replacement
     from unnest($1::tid[], $2::bytea[], $3::bytea[]) n(place, sealed, replacement)
     where t.ctid = n.place and t.secret_encrypted = n.sealed`,
    [
      ours.map(({ place }) => place),
      ours.map(({ sealed }) => sealed),
      ours.map(({ replacement }) => replacement),
    ],
  )
}
