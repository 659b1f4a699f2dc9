/** Statements of the owner that make thousands of folders out of a seeded one. */
import type { ClientBase, Pool } from 'pg'
import { escapeIdentifier } from 'pg'
import { makeToken, sha256 } from '../../src/auth/secrets.ts'
import { inTransaction } from '../../src/db/pool.ts'
import { tablesOfLedger } from '../../src/ledger/tenants.sql.ts'

/** A folder, and the token that opens it alone. */
export interface TokenOfFolder {
  folderId: string
  token: string
}

/**
 * Folders with the same rows as the given one. Ids are unique within a folder, so all but that of the folder stay
 * the same, and all folders give the same bytes. Foreign keys and triggers, which the original has passed, are
 * left out: two thousand copies of 2,000 movements would take minutes.
 * @param owner of two connections, which copy one half each
 * @param reference of the original
 * @returns the original first, then its copies
 */
export async function copyFolder(owner: Pool, reference: string, copies: number): Promise<TokenOfFolder[]> {
  const { rows: originals } = await owner.query<{ id: string }>(
    'select id from grandlivre.folders where reference = $1',
    [reference],
  )
  const original = originals[0]!.id
  const { rows: made } = await owner.query<{ id: string }>(
    `select nextval('grandlivre.ids') as id from generate_series(1, $1)`,
    [copies],
  )
  const ids = made.map(({ id }) => id)
  const half = Math.ceil(copies / 2)
  const halves = [ids.slice(0, half), ids.slice(half)]
  await Promise.all(
    halves.map((some) => inTransaction(owner, (client) => copyRowsOfFolder(client, original, some))),
  )
  return insertTokens(owner, [original, ...ids])
}

async function copyRowsOfFolder(client: ClientBase, original: string, ids: string[]): Promise<void> {
  await client.query('set local session_replication_role = replica')
  await copyRows(client, 'folders', 'id', original, ids)
  // Several would have the reference of the folder that the service calls its own.
  await client.query('update grandlivre.folders set reference = null where id = any ($1)', [ids])
  for (const table of tablesOfLedger.toReversed()) await copyRows(client, table, 'folder_id', original, ids)
}

/** In the order of the new folders, as if they had been loaded one after the other. */
async function copyRows(
  client: ClientBase,
  table: string,
  folderColumn: string,
  original: string,
  ids: string[],
): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select column_name as name from information_schema.columns
     where table_schema = 'grandlivre' and table_name = $1 and is_generated = 'NEVER' and column_name <> $2`,
    [table, folderColumn],
  )
  const columns = rows.map(({ name }) => escapeIdentifier(name)).join(', ')
  await client.query(
    `insert into grandlivre.${table} (${folderColumn}, ${columns})
     select made.folder, original.* from unnest($2::bigint[]) as made (folder)
     cross join lateral (select ${columns} from grandlivre.${table} where ${folderColumn} = $1) as original`,
    [original, ids],
  )
}

/** Company tokens of the only partner with tokens, in use already. */
async function insertTokens(owner: Pool, folderIds: string[]): Promise<TokenOfFolder[]> {
  const tokens = folderIds.map((folderId) => ({ folderId, token: makeToken('api') }))
  await owner.query(
    `insert into grandlivre.tokens
       (schema_id, id, third_party_id, level, firm_id, folder_id, token_hash, hint, activated_at)
     select f.schema_id, nextval('grandlivre.ids'), t.id, 'api', f.firm_id, f.id, made.hash, 'copy', now()
     from unnest($1::bigint[], $2::bytea[]) as made (folder_id, hash)
     join grandlivre.folders f on f.id = made.folder_id
     cross join (select id from grandlivre.third_parties where code = 'DEMO') t`,
    [folderIds, tokens.map(({ token }) => sha256(token))],
  )
  return tokens
}
