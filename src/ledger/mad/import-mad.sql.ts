/**
 * Statements of an import of a MAD file. Most keep the ids of the file, which are unique in all folders of all tenants, as those that the service gives out are.
 *
 * The sequence moves beyond them value by value: `setval` could take back what another session has drawn meanwhile. A
 * million values take a second, and more are refused, which also keeps a file from using up the ids of everyone. What
 * others have drawn before and not yet committed cannot be seen, so their transactions are waited for: drawing holds a
 * lock on the sequence until its transaction ends.
 */
import { setTimeout } from 'node:timers/promises'
import type { ClientBase } from 'pg'
import type { FolderKey } from '../../formats/rows.ts'
import { idsPerBlock } from '../ids.ts'
import type { IdTable } from '../import/books.ts'

/** Values of the sequence that one import may pass over. */
const blocksMax = 1_000_000
const pollMs = 200
/** Longer than any import takes: after it the other transaction may be waiting for this one. */
const othersEndMs = 600_000

/** Makes imports that keep ids wait for each other. Before the first id is drawn. */
export async function lockKeptIds(client: ClientBase): Promise<void> {
  await client.query(`select pg_advisory_xact_lock(hashtextextended('grandlivre kept ids', 0))`)
}

/**
 * Ensures that no id up to this one is given out from now on.
 * @param path of the id in the file
 * @throws {Error} if it lies too far beyond those given out so far
 */
export async function passIds(client: ClientBase, last: string, path: () => Promise<string>): Promise<void> {
  const { rows } = await client.query<{ next: string }>(
    `select case when is_called then last_value + $1 else last_value end as next from grandlivre.ids`,
    [idsPerBlock],
  )
  const blocks = Math.ceil((Number(last) + 1 - Number(rows[0]!.next)) / idsPerBlock)
  if (blocks > blocksMax)
    throw new Error(
      `${await path()} "${last}": this database gives out ids from ${rows[0]!.next} on, too far below it. ` +
        `Import with --renumber for new ids`,
    )
  await client.query(`select count(*) from grandlivre.draw_several('grandlivre.ids', $1)`, [
    Math.max(blocks, 0),
  ])
  await waitForDrawers(client)
}

/** @throws {Error} if a transaction does not end */
async function waitForDrawers(client: ClientBase): Promise<void> {
  const drawers = async (among: string[] | null) => {
    const { rows } = await client.query<{ transaction: string }>(
      `select distinct virtualtransaction as transaction from pg_locks
       where locktype = 'relation' and relation = 'grandlivre.ids'::regclass and mode = 'RowExclusiveLock'
         and database = (select oid from pg_database where datname = current_database())
         and pid <> pg_backend_pid() and ($1::text[] is null or virtualtransaction = any ($1))`,
      [among],
    )
    return rows.map(({ transaction }) => transaction)
  }
  const deadline = Date.now() + othersEndMs
  for (let open = await drawers(null); open.length > 0; open = await drawers(open)) {
    if (Date.now() > deadline)
      throw new Error('Another transaction has drawn ids and does not end: end it, or import with --renumber')
    await setTimeout(pollMs)
  }
}

export interface IdOfTable {
  table: IdTable | 'entries' | 'movements'
  id: string
}

/** The first id of these rows of the folder that a row of the same table has in another folder. */
export async function findTakenId(
  client: ClientBase,
  key: FolderKey,
  tables: readonly IdOfTable['table'][],
): Promise<(IdOfTable & { folderId: string; folderName: string }) | undefined> {
  for (const table of tables) {
    // Per folder: one look into its index where no id lies between the first and the last of these rows.
    const { rows } = await client.query<IdOfTable & { folderId: string; folderName: string }>(
      `select '${table}' as table, taken.id, f.id as "folderId", f.name as "folderName"
       from (select min(id) as first, max(id) as last from grandlivre.${table}
             where schema_id = $1 and folder_id = $2) own
       cross join grandlivre.folders f
       cross join lateral (
         select other.id from grandlivre.${table} other
         where other.schema_id = f.schema_id and other.folder_id = f.id and other.id between own.first and own.last
           and exists (select from grandlivre.${table} mine
             where mine.schema_id = $1 and mine.folder_id = $2 and mine.id = other.id)
         order by other.id limit 1
       ) taken
       where (f.schema_id, f.id) <> ($1, $2)
       order by taken.id limit 1`,
      [key.schemaId, key.folderId],
    )
    if (rows[0] !== undefined) return rows[0]
  }
  return undefined
}

/** The highest id of these tables' rows in the folder; undefined if there is none. */
export async function lastId(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  tables: readonly IdOfTable['table'][],
): Promise<IdOfTable | undefined> {
  const each = tables.map(
    (table) =>
      `select '${table}' as table, max(id) as id from grandlivre.${table} where schema_id = $1 and folder_id = $2`,
  )
  const { rows } = await client.query<IdOfTable>(
    `select * from (${each.join(' union all ')}) each where id is not null order by id desc limit 1`,
    [schemaId, folderId],
  )
  return rows[0]
}

/** Ids of all registered third parties by their code. */
export async function thirdPartyIds(client: ClientBase): Promise<Map<string, string>> {
  const { rows } = await client.query<{ code: string; id: string }>(
    'select code, id from grandlivre.third_parties',
  )
  return new Map(rows.map(({ code, id }) => [code, id]))
}

export async function setCurrency(client: ClientBase, { schemaId, folderId }: FolderKey, currency: string) {
  const values = [schemaId, folderId, currency]
  await client.query('update grandlivre.folders set currency = $3 where schema_id = $1 and id = $2', values)
}
