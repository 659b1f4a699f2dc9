/**
 * Replaces what entries refer to by what the file has, writing only what differs. The file is in temporary tables (see
 * replace/replace.sql.ts), with the ids that it gets here. A row that changes has lost what a FEC filed of it.
 */

import type { ClientBase } from 'pg'
import { paymentModes, shownPaymentCode } from '../../formats/items/payment.ts'
import { columnName } from '../../formats/items/table.ts'
import type { FolderKey } from '../../formats/rows.ts'
import {
  type BookTable,
  bookTables,
  type IdTable,
  identities,
  isFiled,
  type KnownBook,
} from '../import/books.ts'
import { tablesOfLedger } from '../tenants.sql.ts'

const tables = Object.keys(bookTables) as BookTable[]
/** What identifies their rows is unique in a folder, and ends in a text. */
const uniqueTables = new Set<string>(['vat_codes', 'accounts', 'journals', 'axes', 'sections'])

const ofFolder = '(t.schema_id, t.folder_id) = ($1, $2)'
const columnsAt = (alias: string, columns: string[]) =>
  columns.map((column) => `${alias}.${column}`).join(', ')
/** What a FEC filed of a row, or all else. */
const columnsOf = (table: BookTable, ofFec = false) =>
  Object.keys(bookTables[table].columns)
    .filter((member) => isFiled(table, member) === ofFec)
    .map(columnName)
const idOf = (table: string) => (/^(companies|employees)$/.test(table) ? 'account_id' : 'id')
/** A number or code that makes room for that of the file until the row gets its own, or is deleted. */
const parked = `lpad(t.id::text, 40, 'Z')`

export async function createFiledBooks(client: ClientBase): Promise<void> {
  for (const name of tables)
    await client.query(
      `create temporary table filed_${name} (like grandlivre.${name} including defaults) on commit drop`,
    )
}

/** A file without their data says nothing of these employees: it has what the ledger has. */
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
 * Inserts and updates. Exercices become as long as the entries of both sides need.
 * @returns how many rows differed
 */
export async function writeBooks(client: ClientBase, { schemaId, folderId }: FolderKey): Promise<number> {
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
    if (name !== 'exercices') written += await updateBooks(client, key, name)
  }
  const columns = columnsOf('exercices')
  // The others differ still, and are written and counted at the end.
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
export async function endBooks(client: ClientBase, { schemaId, folderId }: FolderKey): Promise<number> {
  const key = [schemaId, folderId]
  let written = await updateBooks(client, key, 'exercices')
  for (const name of tablesOfLedger.filter((table) => table in bookTables)) {
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

async function updateBooks(client: ClientBase, key: string[], name: BookTable): Promise<number> {
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
export async function knownBooks(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
): Promise<KnownBook[]> {
  const rowsOf = (table: IdTable) =>
    `select '${table}' as table, t.id, array[${identities[table].map((member) => `t.${columnName(member)}::text`).join(', ')}] as identity
     from grandlivre.${table} t where ${ofFolder}`
  const { rows } = await client.query<KnownBook>(
    `${(Object.keys(identities) as IdTable[]).map(rowsOf).join(' union all ')} order by id`,
    [schemaId, folderId],
  )
  return rows.map((row) =>
    row.table === 'payments' ? { ...row, identity: row.identity.map(shownPaymentCode) } : row,
  )
}
