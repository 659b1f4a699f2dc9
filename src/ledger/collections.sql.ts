/**
 * Reads a folder's collections as exports show them, by cursor and in ascending id. That is the order of their keys, so
 * nothing is sorted. Statements run inside the caller's transaction.
 */

import type pg from 'pg'
import { readByCursor } from '../db/cursor.ts'
import { queryRow } from '../db/statement.ts'
import type { FirmView, FolderView } from '../formats/items/accounting-folder.ts'
import { type AccountView, accountTable } from '../formats/items/accounts/account.ts'
import { addressFields } from '../formats/items/accounts/address.ts'
import { companyTable, employeeTable } from '../formats/items/accounts/parties.ts'
import { type VatCodeView, vatTable } from '../formats/items/accounts/vat.ts'
import { type AxisView, axisTable, sectionTable } from '../formats/items/axis.ts'
import type { ExerciceView } from '../formats/items/exercice.ts'
import { type BankView, bankTable, type JournalView, journalTable } from '../formats/items/journal.ts'
import { type PaymentView, paymentTable } from '../formats/items/payment.ts'
import { columnName, shownColumns, type Table } from '../formats/items/table.ts'
import type { FolderKey } from '../formats/rows.ts'

type Batches<Row> = AsyncGenerator<Row[]>

/** The address in a column, as JSON. */
const fieldsJson = (column: string) =>
  `json_build_object(${addressFields.map((field) => `'${field}', (${column}).${columnName(field)}`).join(', ')})`
/**
 * The address as JSON; null if every field is null. (For a row, `is null` means that all its fields are null. `is not
 * null` would mean that no field is null.)
 */
const addressJson = (column: string) => `case when not (${column} is null) then ${fieldsJson(column)} end`

/** The columns of a table that an item shows. */
const columnsAt = (alias: string, table: Table) =>
  shownColumns(table)
    .map(({ member, name }) => `${alias}.${name} as "${member}"`)
    .join(', ')

/**
 * The columns of a row that an item shows, as JSON with ids as strings; null if there is no row.
 * @param further SQL for the JSON of further members, by the name of the member
 */
export const rowJson = (alias: string, table: Table, further: Record<string, string> = {}) => {
  const key = table.columns['id'] ? 'id' : 'account_id'
  const members = shownColumns(table).map(({ member, name, encoding }) => {
    const value = `${alias}.${name}`
    const shown = { id: `${value}::text`, address: addressJson(value) } as Record<string, string>
    return [member, shown[encoding] ?? value]
  })
  const pairs = [...members, ...Object.entries(further)].map(([member, value]) => `'${member}', ${value}`)
  return `case when ${alias}.${key} is not null then json_build_object(${pairs.join(', ')}) end`
}

/** The members by which other items name an account, as JSON. */
export const accountJson = (alias: string) => `case when ${alias}.id is not null then json_build_object(
    'producerId', ${alias}.id::text, 'number', ${alias}.number, 'name', ${alias}.name) end`

export const leftJoin = (table: string, alias: string, id: string, of: string) => {
  const [from] = of.split('.')
  return `left join ${table} ${alias}
    on (${alias}.schema_id, ${alias}.folder_id, ${id}) = (${from}.schema_id, ${from}.folder_id, ${of})`
}

/** The columns of a {@link FolderView}, selected from folders `f`. */
export const folderView = `f.name, f.reference, ${fieldsJson('f.address')} as address,
  f.contact_first_name as "contactFirstName", f.contact_last_name as "contactLastName",
  f.contact_phone_number as "contactPhoneNumber", f.contact_mobile_phone_number as "contactMobilePhoneNumber",
  f.contact_mail as "contactMail", f.rcs_producer_id as "rcsProducerId", f.rcs_name as "rcsName", f.siret,
  f.capital::text as capital`

export async function readFolderView(client: pg.ClientBase, { schemaId, folderId }: FolderKey) {
  const text = `select ${folderView} from folders f where f.schema_id = $1 and f.id = $2`
  return queryRow<FolderView>(client, text, [schemaId, folderId])
}

/** Reads the firm of the folder. */
export async function readFirm(client: pg.ClientBase, { schemaId, folderId }: FolderKey) {
  const text = `select firm.id, firm.name, firm.siret
     from folders f join firms firm on (firm.schema_id, firm.id) = (f.schema_id, f.firm_id)
     where f.schema_id = $1 and f.id = $2`
  return queryRow<FirmView>(client, text, [schemaId, folderId])
}

/**
 * Makes a function that reads the rows `t` of a table.
 * @param further columns of other tables, with a comma before the first
 * @param joins the joins for these columns
 */
const readRows =
  <View>(table: Table, further = '', joins = '', batchRows?: number) =>
  (client: pg.ClientBase, { schemaId, folderId }: FolderKey): Batches<View> =>
    readByCursor(
      client,
      `select ${columnsAt('t', table)} ${further} from ${table.name} t ${joins}
       where t.schema_id = $1 and t.folder_id = $2 order by t.id`,
      [schemaId, folderId],
      batchRows,
    )

export const readPayments = readRows<PaymentView>(paymentTable)
export const readVats = readRows<VatCodeView>(vatTable)
export const readBanks = readRows<BankView>(
  bankTable,
  `, ${accountJson('a')} as account, j.id as "journalId", j.name as "journalName", j.code as "journalCode"`,
  `${leftJoin('journals', 'j', 'j.id', 't.journal_id')} ${leftJoin('accounts', 'a', 'a.id', 't.account_id')}`,
)
export const readJournals = readRows<JournalView>(
  journalTable,
  `, ${accountJson('a')} as "counterpartAccount"`,
  leftJoin('accounts', 'a', 'a.id', 't.counterpart_account_id'),
)
/** Reads each axis with its sections. */
export const readAxes = readRows<AxisView>(
  axisTable,
  `, t.default_section_id as "defaultSectionId",
     coalesce((select json_agg(${rowJson('s', sectionTable)} order by s.id) from sections s
       where (s.schema_id, s.folder_id, s.axis_id) = (t.schema_id, t.folder_id, t.id)), '[]') as sections`,
  '',
  1,
)

/** @param withEmployees if false, the personal data of employees is not read at all */
export async function* readAccounts(
  client: pg.ClientBase,
  { schemaId, folderId }: FolderKey,
  withEmployees: boolean,
): Batches<AccountView> {
  // The order of the joins does not matter, because they are look-ups. Planning took 2.7 ms when all orders were
  // compared, and takes 0.7 ms in the written order. Each full export of a small folder reads the accounts.
  await client.query('set local join_collapse_limit = 1')
  const employeesJoined = `${leftJoin('employees', 'e', 'e.account_id', 'a.id')}
     ${leftJoin('payments', 'ep', 'ep.id', 'e.payment_id')}
     ${leftJoin('accounts', 'doubtful', 'doubtful.id', 'e.doubtful_account_id')}`
  const ofEmployee = { payment: rowJson('ep', paymentTable), doubtfulAccount: accountJson('doubtful') }
  yield* readByCursor<AccountView>(
    client,
    `select ${columnsAt('a', accountTable)}, ${accountJson('other')} as "counterpartAccount",
       ${accountJson('corresponding')} as "correspondanceAccount",
       ${rowJson('c', companyTable, { payment: rowJson('cp', paymentTable), vat: rowJson('v', vatTable) })} as company
       ${withEmployees ? `, ${rowJson('e', employeeTable, ofEmployee)} as employee` : ''}
     from accounts a
     ${leftJoin('accounts', 'other', 'other.id', 'a.counterpart_account_id')}
     ${leftJoin('accounts', 'corresponding', 'corresponding.id', 'a.correspondance_account_id')}
     ${leftJoin('companies', 'c', 'c.account_id', 'a.id')}
     ${leftJoin('payments', 'cp', 'cp.id', 'c.payment_id')}
     ${leftJoin('vat_codes', 'v', 'v.id', 'c.vat_id')}
     ${withEmployees ? employeesJoined : ''}
     where a.schema_id = $1 and a.folder_id = $2 order by a.id`,
    [schemaId, folderId],
  )
  await client.query('reset join_collapse_limit')
}

/**
 * Reads fiscal years, ascending by start date, because the names of years follow from their order. @param timeZone
 * determines the day of a closing
 */
export function readExercices(
  client: pg.ClientBase,
  { schemaId, folderId }: FolderKey,
  timeZone: string,
): Batches<ExerciceView> {
  return readByCursor(
    client,
    `select id, start_date::text as start, end_date::text as end, lettering,
       (closed_at at time zone $3)::date::text as "closedOn", closed_by_id as "closedById",
       closed_by_first_name as "closedByFirstName", closed_by_last_name as "closedByLastName"
     from exercices where schema_id = $1 and folder_id = $2 order by start_date, id`,
    [schemaId, folderId, timeZone],
  )
}

/** The folders that a token may read: one folder or, without `folderId`, all folders of a firm. */
export interface OpenedFolders {
  schemaId: string
  firmId: string
  folderId: string | null
}

/** Reads these folders, ascending by id. */
export function readOpenedFolders(
  client: pg.ClientBase,
  { schemaId, firmId, folderId }: OpenedFolders,
): Batches<{ id: string; name: string; reference: string | null; SIRET: string | null }> {
  return readByCursor(
    client,
    `select id, name, reference, siret as "SIRET" from folders
     where schema_id = $1 and firm_id = $2 and ($3::bigint is null or id = $3) order by id`,
    [schemaId, firmId, folderId],
  )
}
