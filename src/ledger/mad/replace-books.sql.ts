/**
 * Replaces what entries refer to by what the file has, writing only what differs. The file is in temporary tables (see
 * replace/replace.sql.ts), with the ids that it gets here. A row that changes has lost what a FEC filed of it.
 */

import type { ClientBase } from 'pg'
import { accountTable } from '../../formats/items/accounts/account.ts'
import { companyTable } from '../../formats/items/accounts/company.ts'
import { employeeTable } from '../../formats/items/accounts/employee.ts'
import { vatTable } from '../../formats/items/accounts/vat.ts'
import { axisTable, sectionTable } from '../../formats/items/axis.ts'
import { bankTable } from '../../formats/items/bank.ts'
import { exerciceTable } from '../../formats/items/exercice.ts'
import { journalTable } from '../../formats/items/journal.ts'
import { paymentTable } from '../../formats/items/payment.ts'
import { columnsOf, type Table } from '../../formats/items/table.ts'
import { paymentModes, shownPaymentCode } from '../../formats/payment.ts'
import type { FolderKey } from '../../formats/rows.ts'
import { tablesOfLedger } from '../tenants.sql.ts'

/** Each before those that refer to it. */
const tables = [
  paymentTable,
  vatTable,
  accountTable,
  companyTable,
  employeeTable,
  journalTable,
  bankTable,
  axisTable,
  sectionTable,
  exerciceTable,
]

/** What is unique in a folder beside ids. The last column is a text. */
const uniqueColumns: Readonly<Record<string, string[]>> = {
  vat_codes: ['code'],
  accounts: ['number'],
  journals: ['code'],
  axes: ['code'],
  sections: ['axis_id', 'code'],
}
const filedColumns: Readonly<Record<string, string[]>> = {
  accounts: ['filed_number', 'filed_name', 'auxiliary_number', 'auxiliary_name'],
  journals: ['filed_name'],
}

const ofFolder = '(t.schema_id, t.folder_id) = ($1, $2)'
const columnsAt = (alias: string, columns: string[]) =>
  columns.map((column) => `${alias}.${column}`).join(', ')
const idOf = (table: string) => (/^(companies|employees)$/.test(table) ? 'account_id' : 'id')
/** A number or code that makes room for that of the file until the row gets its own, or is deleted. */
const parked = `lpad(t.id::text, 40, 'Z')`

export async function createFiledBooks(client: ClientBase): Promise<void> {
  for (const { name } of tables)
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
  for (const table of tables) {
    const { name } = table
    const columns = columnsOf(table)
    const unique = uniqueColumns[name]
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
    if (table !== exerciceTable) written += await updateBooks(client, key, table)
  }
  const columns = columnsOf(exerciceTable)
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
  let written = await updateBooks(client, key, exerciceTable)
  for (const name of tablesOfLedger.filter((each) => tables.some((table) => table.name === each))) {
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

async function updateBooks(client: ClientBase, key: string[], table: Table): Promise<number> {
  const { name } = table
  const columns = columnsOf(table).filter((column) => !['schema_id', 'folder_id'].includes(column))
  const written = [...columns, ...(filedColumns[name] ?? [])]
  const { rowCount } = await client.query(
    `update grandlivre.${name} t set ${written.map((column) => `${column} = f.${column}`).join(', ')}
     from pg_temp.filed_${name} f
     where ${ofFolder} and t.${idOf(name)} = f.${idOf(name)}
       and (${columnsAt('t', columns)}) is distinct from (${columnsAt('f', columns)})`,
    key,
  )
  return rowCount!
}

export interface KnownBook {
  kind: string
  id: string
  identity: string
  further: string | null
}

/** The rows of a folder, by kind and by what identifies them where ids do not. Of several the first comes first. */
export async function knownBooks(client: ClientBase, { schemaId, folderId }: FolderKey) {
  const { rows } = await client.query<KnownBook>(
    `select kind, t.id, identity, further from (
       select 'payments' as kind, schema_id, folder_id, id, code as identity, null as further from grandlivre.payments
       union all select 'vatCodes', schema_id, folder_id, id, code, null from grandlivre.vat_codes
       union all select 'accounts', schema_id, folder_id, id, number, null from grandlivre.accounts
       union all select 'journals', schema_id, folder_id, id, code, null from grandlivre.journals
       union all select 'banks', b.schema_id, b.folder_id, b.id, j.code, b.iban from grandlivre.banks b
         join grandlivre.journals j on (j.schema_id, j.folder_id, j.id) = (b.schema_id, b.folder_id, b.journal_id)
       union all select 'axes', schema_id, folder_id, id, code, null from grandlivre.axes
       union all select 'sections', s.schema_id, s.folder_id, s.id, a.code, s.code from grandlivre.sections s
         join grandlivre.axes a on (a.schema_id, a.folder_id, a.id) = (s.schema_id, s.folder_id, s.axis_id)
       union all select 'exercices', schema_id, folder_id, id, start_date::text, null from grandlivre.exercices
     ) as t where ${ofFolder} order by t.id`,
    [schemaId, folderId],
  )
  return rows.map((row) =>
    row.kind === 'payments' ? { ...row, identity: shownPaymentCode(row.identity) } : row,
  )
}
