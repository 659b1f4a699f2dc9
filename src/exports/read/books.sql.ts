/**
 * The rows that entries of a folder refer to, in the columns of a ledger's tables
 * (packages/contract/src/ledger-tables.ts). One statement reads everything but accounts. Accounts are read batch by
 * batch, because their companies and employees may have hundreds of megabytes. Statements are named, so that a
 * connection keeps their plans.
 */
import type pg from 'pg'
import type { FolderView } from '../../formats/items/accounting-folder.ts'
import {
  type CompanyView,
  companyTable,
  type EmployeeView,
  employeeTable,
} from '../../formats/items/accounts/parties.ts'
import type { JournalType } from '../../formats/items/journal.ts'
import type { FiledAccount, FolderKey } from '../../formats/rows.ts'
import { accountJson, folderView, leftJoin, rowJson } from '../../ledger/collections.sql.ts'

/** Ids are numbers: they are below 2^53. Rows of each kind are ascending by id. Days are `YYYY-MM-DD`. */
export interface Books {
  folders: { society_id: number; view: FolderView }[]
  exercices: { exercice_id: number; start_date: string; end_date: string; closed_at: string | null }[]
  journals: { journal_id: number; journal_code: string; journal_name: string; journal_type: JournalType }[]
  payments: { payment_id: number; code: string }[]
  banks: { bank_id: number }[]
  axes: { axis_id: number; axis_code: string; axis_name: string }[]
  sections: SectionRow[]
  /** `rate` in hundredths of a percent. */
  vats: { vat_id: number; vat_code: string; rate: number }[]
  thirdParties: { id: number; code: string; name: string }[]
}

interface SectionRow {
  section_id: number
  axis_id: number
  section_code: string
  section_name: string
  account_roots: string[]
}

/** What the rows of movements show of an account. */
export type AccountHead = Omit<FiledAccount, 'filedNumber' | 'filedName'>

export interface BookAccount extends AccountHead {
  closed: boolean
  counterpartAccountId: string | null
  correspondanceAccountId: string | null
  /** The company. The ids of its mode of payment and of its VAT code take the place of these two. */
  company: (Omit<CompanyView, 'payment' | 'vat'> & { paymentId: number | null; vatId: number | null }) | null
  employee: (Omit<EmployeeView, 'payment'> & { paymentId: number | null }) | null
}

const ofFolder = 'schema_id = $1 and folder_id = $2'

/**
 * The columns of each kind. A column with the name of a column of the ledger's table also has the value of that column.
 */
const selects: Record<keyof Books, string> = {
  folders: `f.id as society_id, (select row_to_json(shown) from (select ${folderView}) shown) as view
    from folders f where f.schema_id = $1 and f.id = $2`,
  exercices: `id as exercice_id, start_date, end_date, lettering, (closed_at at time zone $3)::date as closed_at,
    closed_by_id, closed_by_first_name, closed_by_last_name from exercices where ${ofFolder}`,
  journals: `id as journal_id, counterpart_account_id, code as journal_code, name as journal_name,
    type as journal_type, locked from journals where ${ofFolder}`,
  payments: `id as payment_id, code from payments where ${ofFolder}`,
  banks: `id as bank_id, account_id, journal_id, rib, iban, bic, is_default from banks where ${ofFolder}`,
  axes: `id as axis_id, default_section_id, code as axis_code, name as axis_name from axes where ${ofFolder}`,
  sections: `id as section_id, axis_id, code as section_code, name as section_name, account_roots, closed
    from sections where ${ofFolder}`,
  vats: `id as vat_id, code as vat_code, rate from vat_codes where ${ofFolder}`,
  thirdParties: 'id, code, name from third_parties',
}

const everyBook = {
  name: 'books',
  text: Object.entries(selects)
    .map(([kind, select]) => `select '${kind}', row_to_json(t) from (select ${select} order by 1) t`)
    .join(' union all '),
  rowMode: 'array' as const,
}

/**
 * Reads the books in one round trip. Undefined if the folder does not exist.
 * @param timeZone decides on which day a fiscal year was closed
 */
export async function readBooks(
  client: pg.ClientBase,
  { schemaId, folderId }: FolderKey,
  timeZone: string,
): Promise<Books | undefined> {
  const values = [schemaId, folderId, timeZone]
  const { rows } = await client.query<[keyof Books, object]>({ ...everyBook, values })
  const rowsOf = (kind: keyof Books) => rows.filter(([name]) => name === kind).map(([, row]) => row)
  const books = Object.fromEntries(Object.keys(selects).map((kind) => [kind, rowsOf(kind as keyof Books)]))
  return books['folders']!.length === 0 ? undefined : (books as unknown as Books)
}

const batchRows = 500

const accountBatch = (name: string, accounts: string) => ({
  name,
  text: `select a.id, a.number, a.name, a.auxiliary_number as "auxiliaryNumber",
      a.auxiliary_name as "auxiliaryName", a.closed, a.counterpart_account_id as "counterpartAccountId",
      a.correspondance_account_id as "correspondanceAccountId",
      ${rowJson('c', companyTable, { paymentId: 'c.payment_id', vatId: 'c.vat_id' })} as company,
      ${rowJson('e', employeeTable, { paymentId: 'e.payment_id', doubtfulAccount: accountJson('doubtful') })} as employee
    from ${accounts} a
    ${leftJoin('companies', 'c', 'c.account_id', 'a.id')}
    ${leftJoin('employees', 'e', 'e.account_id', 'a.id')}
    ${leftJoin('accounts', 'doubtful', 'doubtful.id', 'e.doubtful_account_id')}
    where a.schema_id = $1 and a.folder_id = $2 and a.id > $3
    order by a.id limit ${batchRows}`,
})

const firstAccounts = accountBatch('first accounts of books', 'accounts')
/**
 * Limits the accounts before it joins them. The first statement is planned for any folder and joins all companies of
 * the folder for each batch: that took 25 s of the database for 400,000 accounts. For a folder of one batch, the first
 * statement is cheaper by 0.25 ms.
 */
const nextAccounts = accountBatch(
  'next accounts of books',
  `(select * from accounts where ${ofFolder} and id > $3 order by id limit ${batchRows})`,
)

/** Reads accounts, ascending by id. A folder of up to 500 accounts takes one round trip. */
export async function* readBookAccounts(
  client: pg.ClientBase,
  { schemaId, folderId }: FolderKey,
): AsyncGenerator<BookAccount[]> {
  for (let after = '0'; ; ) {
    const batch = after === '0' ? firstAccounts : nextAccounts
    const { rows } = await client.query<BookAccount>({ ...batch, values: [schemaId, folderId, after] })
    if (rows.length > 0) yield rows
    if (rows.length < batchRows) return
    after = rows.at(-1)!.id
  }
}
