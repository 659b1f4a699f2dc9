/**
 * Statements of an import of a MAD file. Most imports keep the ids of the file. Ids are unique in all folders of all
 * tenants, those of files like those that the service gives out.
 *
 * The sequence moves beyond them value by value: `setval` could take back what another session has drawn meanwhile. A
 * million values take a second, and more are refused, which also keeps a file from using up the ids of everyone. What
 * others have drawn before and not yet committed cannot be seen, so their transactions are waited for: drawing holds a
 * lock on the sequence until its transaction ends.
 */
import { setTimeout } from 'node:timers/promises'
import type { ClientBase } from 'pg'
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

/**
 * Replaces master data by that of the file, writing only the rows that differ. The file is in temporary tables (see
 * replace/replace.sql.ts), with the ids that it gets here. A row that changes loses what a FEC filed of it.
 */

const tables = Object.keys(masterTables) as MasterTable[]
/** What identifies their rows is unique in a folder, and ends in a text. */
const uniqueTables = new Set<string>(['vat_codes', 'accounts', 'journals', 'axes', 'sections'])

const ofFolder = '(t.schema_id, t.folder_id) = ($1, $2)'
const columnsAt = (alias: string, columns: string[]) =>
  columns.map((column) => `${alias}.${column}`).join(', ')
/** What a FEC filed of a row, or all else. */
const columnsOf = (table: MasterTable, ofFec = false) =>
  Object.keys(masterTables[table].columns)
    .filter((member) => isFiled(table, member) === ofFec)
    .map(columnName)
const idOf = (table: string) => (/^(companies|employees)$/.test(table) ? 'account_id' : 'id')
/** A number or code that makes room for that of the file until the row gets its own, or is deleted. */
const parked = `lpad(t.id::text, 40, 'Z')`

export async function createFiledMasterTables(client: ClientBase): Promise<void> {
  for (const name of tables)
    await client.query(
      `create temporary table filed_${name} (like grandlivre.${name} including defaults) on commit drop`,
    )
}

/** Copies employees whose data the file leaves out from the ledger into the tables of the file. */
export async function keepEmployees(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  accountIds: readonly string[],
): Promise<void> {
  await client.query(
    `insert into pg_temp.filed_employees select t.* from grandlivre.employees t
     where ${ofFolder} and t.account_id = any ($3)`,
    [schemaId, folderId, accountIds],
  )
}

/**
 * Inserts and updates. Exercices are lengthened to cover the entries of the ledger and of the file.
 * @returns how many rows differed
 */
export async function writeMasterRows(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
): Promise<number> {
  const key = [schemaId, folderId]
  let written = 0
  // A file shows any other internal code as that of a cheque.
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
    const inserted = await client.query(
      `insert into grandlivre.${name} (${columns.join(', ')})
       select ${columnsAt('f', columns)} from pg_temp.filed_${name} f where not exists (
         select from grandlivre.${name} t where ${ofFolder} and t.${idOf(name)} = f.${idOf(name)})`,
      key,
    )
    written += inserted.rowCount!
    if (name !== 'exercices') written += await updateMasterRows(client, key, name)
  }
  const columns = columnsOf('exercices')
  // Other exercices still differ: `finishMasterRows` writes and counts them.
  const lengthened = await client.query<{ isAsFiled: boolean }>(
    `update grandlivre.exercices t
     set start_date = least(t.start_date, f.start_date), end_date = greatest(t.end_date, f.end_date)
     from pg_temp.filed_exercices f
     where ${ofFolder} and t.id = f.id and (f.start_date < t.start_date or f.end_date > t.end_date)
     returning (${columnsAt('t', columns)}) is not distinct from (${columnsAt('f', columns)}) as "isAsFiled"`,
    key,
  )
  return written + lengthened.rows.filter(({ isAsFiled }) => isAsFiled).length
}

/**
 * Once entries refer to rows of the file alone: gives exercices their days, and deletes what the file does not have. VAT
 * codes stay, since a file has only those of companies, unless one of the file took their code.
 * @returns how many rows differed
 */
export async function finishMasterRows(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
): Promise<number> {
  const key = [schemaId, folderId]
  let written = await updateMasterRows(client, key, 'exercices')
  for (const name of tablesOfLedger.filter((table) => table in masterTables)) {
    const deleted = await client.query(
      `delete from grandlivre.${name} t where ${ofFolder}
         and not exists (select from pg_temp.filed_${name} f where f.${idOf(name)} = t.${idOf(name)})
         ${name === 'vat_codes' ? `and t.code = ${parked}` : ''}`,
      key,
    )
    written += deleted.rowCount!
  }
  return written
}

async function updateMasterRows(client: ClientBase, key: string[], name: MasterTable): Promise<number> {
  const columns = columnsOf(name).filter((column) => !['schema_id', 'folder_id'].includes(column))
  const written = [...columns, ...columnsOf(name, true)]
  const { rowCount } = await client.query(
    `update grandlivre.${name} t set ${written.map((column) => `${column} = f.${column}`).join(', ')}
     from pg_temp.filed_${name} f
     where ${ofFolder} and t.${idOf(name)} = f.${idOf(name)}
       and (${columnsAt('t', columns)}) is distinct from (${columnsAt('f', columns)})`,
    key,
  )
  return rowCount!
}

/** The rows of a folder that have ids. Of several with one identity the first comes first. */
export async function knownMasterRows(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
): Promise<KnownMasterRow[]> {
  const rowsOf = (table: IdTable) =>
    `select '${table}' as table, t.id, array[${identities[table].map((member) => `t.${columnName(member)}::text`).join(', ')}] as identity
     from grandlivre.${table} t where ${ofFolder}`
  const { rows } = await client.query<KnownMasterRow>(
    `${(Object.keys(identities) as IdTable[]).map(rowsOf).join(' union all ')} order by id`,
    [schemaId, folderId],
  )
  return rows.map((row) =>
    row.table === 'payments' ? { ...row, identity: row.identity.map(shownPaymentCode) } : row,
  )
}
