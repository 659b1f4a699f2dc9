/**
 * Statements for importing a MAD file. Most imports keep the ids of the file. Ids are unique in all folders of all
 * tenants, and kept ids share one range with the ids that the service gives out.
 *
 * The sequence is therefore moved beyond the kept ids, value by value, because `setval` could take back values that
 * another session has drawn meanwhile. A million values take a second. More are refused, which also keeps a file from
 * using up everyone's ids. Ids that others have drawn but not yet committed cannot be seen, so the import waits for
 * their transactions: drawing holds a lock on the sequence until its transaction ends.
 */
import { setTimeout } from 'node:timers/promises'
import type { ClientBase } from 'pg'
import { queryCount, queryRow, queryRows, queryValue } from '../../db/statement.ts'
import { paymentModes, shownPaymentCode } from '../../formats/items/payment.ts'
import { columnName } from '../../formats/items/table.ts'
import type { FolderKey } from '../../formats/rows.ts'
import { idsPerBlock } from '../ids.ts'
import {
  type IdTable,
  identities,
  isFiled,
  type KnownMasterRow,
  type MasterTable,
  masterTables,
} from '../import/master-data.ts'
import { tablesOfLedger } from '../tenants.sql.ts'

/** The most values of the sequence that one import may skip. */
const blocksMax = 1_000_000
const pollMs = 200
/** Longer than any import takes. After this time the other transaction may be waiting for this one. */
const othersEndMs = 600_000

/** Makes imports that keep ids wait for each other. Call it before the first id is drawn. */
export async function lockKeptIds(client: ClientBase): Promise<void> {
  await client.query(`select pg_advisory_xact_lock(hashtextextended('grandlivre kept ids', 0))`)
}

/**
 * Ensures that ids up to `last` are not given out from now on.
 * @param path finds the path of the id in the file, for the error
 * @throws {Error} if the id lies too far beyond the ids given out so far
 */
export async function passIds(client: ClientBase, last: string, path: () => Promise<string>): Promise<void> {
  const text = `select case when is_called then last_value + $1 else last_value end from grandlivre.ids`
  const next = await queryValue<string>(client, text, [idsPerBlock])
  const blocks = Math.ceil((Number(last) + 1 - Number(next)) / idsPerBlock)
  if (blocks > blocksMax)
    throw new Error(
      `${await path()} "${last}": too far above the ids that this database gives out, from ${next} on. ` +
        `Import with --renumber for new ids`,
    )
  await client.query(`select count(*) from grandlivre.draw_several('grandlivre.ids', $1)`, [
    Math.max(blocks, 0),
  ])
  await waitForDrawers(client)
}

/** Waits for transactions that have drawn ids. @throws {Error} if one of them does not end in time */
async function waitForDrawers(client: ClientBase): Promise<void> {
  const drawers = async (among: string[] | null) => {
    const text = `select distinct virtualtransaction as transaction from pg_locks
       where locktype = 'relation' and relation = 'grandlivre.ids'::regclass and mode = 'RowExclusiveLock'
         and database = (select oid from pg_database where datname = current_database())
         and pid <> pg_backend_pid() and ($1::text[] is null or virtualtransaction = any ($1))`
    return (await queryRows<{ transaction: string }>(client, text, [among])).map(
      ({ transaction }) => transaction,
    )
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

type TakenId = IdOfTable & { folderId: string; folderName: string }

/** Finds an id that this folder and another one have in the same table: the lowest in the first such table. */
export async function findTakenId(
  client: ClientBase,
  key: FolderKey,
  tables: readonly IdOfTable['table'][],
): Promise<TakenId | undefined> {
  for (const table of tables) {
    // For a folder without ids between the first and the last of these rows, this takes one look into the index.
    const text = `select '${table}' as table, taken.id, f.id as "folderId", f.name as "folderName"
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
       order by taken.id limit 1`
    const taken = await queryRow<TakenId>(client, text, [key.schemaId, key.folderId])
    if (taken !== undefined) return taken
  }
  return undefined
}

/** The highest id of the folder's rows in these tables; undefined if there are no rows. */
export async function lastId(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  tables: readonly IdOfTable['table'][],
): Promise<IdOfTable | undefined> {
  const each = tables.map(
    (table) =>
      `select '${table}' as table, max(id) as id from grandlivre.${table} where schema_id = $1 and folder_id = $2`,
  )
  const text = `select * from (${each.join(' union all ')}) each where id is not null order by id desc limit 1`
  return queryRow<IdOfTable>(client, text, [schemaId, folderId])
}

/** The ids of all registered third parties, by code. */
export async function thirdPartyIds(client: ClientBase): Promise<Map<string, string>> {
  const text = 'select code, id from grandlivre.third_parties'
  const rows = await queryRows<{ code: string; id: string }>(client, text)
  return new Map(rows.map(({ code, id }) => [code, id]))
}

export async function setCurrency(client: ClientBase, { schemaId, folderId }: FolderKey, currency: string) {
  const values = [schemaId, folderId, currency]
  await client.query('update grandlivre.folders set currency = $3 where schema_id = $1 and id = $2', values)
}

/**
 * Replaces the folder's master data with that of the file, writing only the rows that differ. The file is in temporary
 * tables (see replace/replace.sql.ts), where its rows have the ids that they will have in the ledger. A row that
 * changes loses the fields that a FEC filed for it.
 */

const tables = Object.keys(masterTables) as MasterTable[]
/** The tables that identify a row by a text. It is unique in a folder, alone or with other columns before it. */
const uniqueTables = new Set<string>(['vat_codes', 'accounts', 'journals', 'axes', 'sections'])

const ofFolder = '(t.schema_id, t.folder_id) = ($1, $2)'
const columnsAt = (alias: string, columns: string[]) =>
  columns.map((column) => `${alias}.${column}`).join(', ')
/** Columns for the fields that a FEC filed for a row (`ofFec`), or all other columns. */
const columnsOf = (table: MasterTable, ofFec = false) =>
  Object.keys(masterTables[table].columns)
    .filter((member) => isFiled(table, member) === ofFec)
    .map(columnName)
const idOf = (table: string) => (/^(companies|employees)$/.test(table) ? 'account_id' : 'id')
/**
 * A temporary number or code for a row. It leaves the number or code free for a row of the file until this row gets its
 * own, or is deleted.
 */
const parked = `lpad(t.id::text, 40, 'Z')`

export async function createFiledMasterTables(client: ClientBase): Promise<void> {
  for (const name of tables)
    await client.query(
      `create temporary table filed_${name} (like grandlivre.${name} including defaults) on commit drop`,
    )
}

/** Copies employees from the ledger into the tables of the file, if the file leaves out their data. */
export async function keepEmployees(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  accountIds: readonly string[],
): Promise<void> {
  const text = `insert into pg_temp.filed_employees select t.* from grandlivre.employees t
     where ${ofFolder} and t.account_id = any ($3)`
  await client.query(text, [schemaId, folderId, accountIds])
}

/**
 * Inserts and updates rows. Exercices are lengthened to cover the entries of the ledger as well as those of the file.
 * @returns how many rows differed
 */
export async function writeMasterRows(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
): Promise<number> {
  const key = [schemaId, folderId]
  let written = 0
  // A file shows an internal code that is not among the six as that of a cheque, so the code in the ledger stays.
  await client.query(
    `update pg_temp.filed_payments f set code = t.code from grandlivre.payments t
     where ${ofFolder} and t.id = f.id and t.code <> all ($3) and f.code = $4`,
    [...key, Object.keys(paymentModes), shownPaymentCode('')],
  )
  for (const name of tables) {
    const columns = columnsOf(name)
    const unique = uniqueTables.has(name) ? identities[name as IdTable].map(columnName) : undefined
    if (unique !== undefined)
      await client.query(
        `update grandlivre.${name} t set ${unique.at(-1)} = ${parked} from pg_temp.filed_${name} f
         where ${ofFolder} and (${columnsAt('f', unique)}) = (${columnsAt('t', unique)}) and f.id <> t.id`,
        key,
      )
    const insert = `insert into grandlivre.${name} (${columns.join(', ')})
       select ${columnsAt('f', columns)} from pg_temp.filed_${name} f where not exists (
         select from grandlivre.${name} t where ${ofFolder} and t.${idOf(name)} = f.${idOf(name)})`
    written += await queryCount(client, insert, key)
    if (name !== 'exercices') written += await updateMasterRows(client, key, name)
  }
  const columns = columnsOf('exercices')
  // Counts the exercices that are now as in the file. The others still differ: `finishMasterRows` writes and counts
  // them.
  const lengthen = `update grandlivre.exercices t
     set start_date = least(t.start_date, f.start_date), end_date = greatest(t.end_date, f.end_date)
     from pg_temp.filed_exercices f
     where ${ofFolder} and t.id = f.id and (f.start_date < t.start_date or f.end_date > t.end_date)
     returning (${columnsAt('t', columns)}) is not distinct from (${columnsAt('f', columns)}) as "isAsFiled"`
  const lengthened = await queryRows<{ isAsFiled: boolean }>(client, lengthen, key)
  return written + lengthened.filter(({ isAsFiled }) => isAsFiled).length
}

/**
 * Call it once entries refer only to rows of the file. Gives exercices their days, and deletes rows that the file
 * does not have. A VAT code stays, because a file has only the codes of companies. It is deleted if a code of the file
 * took its place.
 * @returns how many rows differed
 */
export async function finishMasterRows(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
): Promise<number> {
  const key = [schemaId, folderId]
  let written = await updateMasterRows(client, key, 'exercices')
  for (const name of tablesOfLedger.filter((table) => table in masterTables)) {
    const text = `delete from grandlivre.${name} t where ${ofFolder}
         and not exists (select from pg_temp.filed_${name} f where f.${idOf(name)} = t.${idOf(name)})
         ${name === 'vat_codes' ? `and t.code = ${parked}` : ''}`
    written += await queryCount(client, text, key)
  }
  return written
}

function updateMasterRows(client: ClientBase, key: string[], name: MasterTable): Promise<number> {
  const columns = columnsOf(name).filter((column) => !['schema_id', 'folder_id'].includes(column))
  const written = [...columns, ...columnsOf(name, true)]
  const text = `update grandlivre.${name} t set ${written.map((column) => `${column} = f.${column}`).join(', ')}
     from pg_temp.filed_${name} f
     where ${ofFolder} and t.${idOf(name)} = f.${idOf(name)}
       and (${columnsAt('t', columns)}) is distinct from (${columnsAt('f', columns)})`
  return queryCount(client, text, key)
}

/** The rows of a folder that have ids. If several have the same identity, the one with the lowest id comes first. */
export async function knownMasterRows(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
): Promise<KnownMasterRow[]> {
  const rowsOf = (table: IdTable) =>
    `select '${table}' as table, t.id, array[${identities[table].map((member) => `t.${columnName(member)}::text`).join(', ')}] as identity
     from grandlivre.${table} t where ${ofFolder}`
  const text = `${(Object.keys(identities) as IdTable[]).map(rowsOf).join(' union all ')} order by id`
  return (await queryRows<KnownMasterRow>(client, text, [schemaId, folderId])).map((row) =>
    row.table === 'payments' ? { ...row, identity: row.identity.map(shownPaymentCode) } : row,
  )
}
