/**
 * The tables of a ledger as `POST /mad/ledgers/changes` sends them (docs/spec/ledgers.md#tables), in the order of the
 * answer. The service writes rows by this list, and partners create tables from it. A row is a line of PostgreSQL's
 * COPY: a table with these columns takes it as it is, and gives it back byte for byte.
 */

/**
 * A type of PostgreSQL. A column of type `json` may also be created as `text`, but not as `jsonb`, which does not keep
 * the bytes.
 */
export type ColumnType =
  | 'bigint'
  | 'date'
  | 'timestamptz'
  | 'boolean'
  | 'numeric(18,2)'
  | 'numeric(18,6)'
  | 'text'
  | 'json'

export interface LedgerColumn {
  name: string
  type: ColumnType
  description: string
}

export interface LedgerTable {
  description: string
  /** In a table that is sent as a whole, the first column is the key. */
  columns: readonly LedgerColumn[]
}

// biome-ignore format: a table
const declared = {
  folders: {
    description: 'Folders: the books of one company each',
    columns: [
      { name: 'society_id', type: 'bigint', description: 'Id of the folder' },
      { name: 'name', type: 'text', description: 'Name of the company' },
      { name: 'reference', type: 'text', description: 'Reference of the folder at the firm' },
      { name: 'siret', type: 'text', description: 'SIRET or SIREN of the company' },
      { name: 'capital', type: 'numeric(18,2)', description: 'Share capital' },
      { name: 'details', type: 'json', description: 'Address, contact and RCS' },
    ],
  },
  exercices: {
    description: 'Fiscal years',
    columns: [
      { name: 'exercice_id', type: 'bigint', description: 'Id of the fiscal year' },
      { name: 'start_date', type: 'date', description: 'First day' },
      { name: 'end_date', type: 'date', description: 'Last day' },
      { name: 'months', type: 'bigint', description: 'Duration in months' },
      { name: 'state', type: 'text', description: 'open or closed' },
      { name: 'lettering', type: 'text', description: 'MONO or MULTI' },
      { name: 'closed_at', type: 'date', description: 'Day of its closing; absent while it is open' },
      { name: 'closed_by_id', type: 'bigint', description: 'Id of the person who closed it' },
      { name: 'closed_by_first_name', type: 'text', description: 'First name of the person who closed it' },
      { name: 'closed_by_last_name', type: 'text', description: 'Last name of the person who closed it' },
    ],
  },
  journals: {
    description: 'Journals',
    columns: [
      { name: 'journal_id', type: 'bigint', description: 'Id of the journal' },
      { name: 'counterpart_account_id', type: 'bigint', description: 'Account of a bank or cash journal' },
      { name: 'journal_code', type: 'text', description: 'Code of the journal' },
      { name: 'journal_name', type: 'text', description: 'Name of the journal' },
      { name: 'journal_type', type: 'text', description: 'Code of its type: ACH' },
      { name: 'journal_type_name', type: 'text', description: 'Name of its type: Achat' },
      { name: 'locked', type: 'boolean', description: 'Whether nothing more may be booked in it' },
    ],
  },
  accounts: {
    description: 'Accounts, those of suppliers, customers and employees among them',
    columns: [
      { name: 'account_id', type: 'bigint', description: 'Id of the account' },
      { name: 'counterpart_account_id', type: 'bigint', description: 'Account that usually balances it' },
      { name: 'correspondance_account_id', type: 'bigint', description: 'Corresponding account of a general account' },
      { name: 'account_number', type: 'text', description: 'Number of the account' },
      { name: 'account_name', type: 'text', description: 'Name of the account' },
      { name: 'closed', type: 'boolean', description: 'Whether it is closed' },
      { name: 'details', type: 'json', description: 'The company of a supplier or customer, or the employee' },
    ],
  },
  payments: {
    description: 'Modes of payment',
    columns: [
      { name: 'payment_id', type: 'bigint', description: 'Id of the mode of payment' },
      { name: 'payment_name', type: 'text', description: 'Its name: Virement' },
      { name: 'payment_code', type: 'text', description: 'Its code: VIR' },
      { name: 'internal_code', type: 'text', description: 'Its code in the bookkeeping: VIRT' },
    ],
  },
  banks: {
    description: 'Bank accounts of the company',
    columns: [
      { name: 'bank_id', type: 'bigint', description: 'Id of the bank account' },
      { name: 'account_id', type: 'bigint', description: 'Account in which it is booked' },
      { name: 'journal_id', type: 'bigint', description: 'Journal in which it is booked' },
      { name: 'rib', type: 'text', description: 'RIB' },
      { name: 'iban', type: 'text', description: 'IBAN' },
      { name: 'bic', type: 'text', description: 'BIC' },
      { name: 'is_default', type: 'boolean', description: 'Whether it is the usual one' },
    ],
  },
  axes: {
    description: 'Analytical axes',
    columns: [
      { name: 'axis_id', type: 'bigint', description: 'Id of the axis' },
      { name: 'default_section_id', type: 'bigint', description: 'Section of what names none' },
      { name: 'axis_code', type: 'text', description: 'Code of the axis' },
      { name: 'axis_name', type: 'text', description: 'Name of the axis' },
    ],
  },
  sections: {
    description: 'Sections of analytical axes',
    columns: [
      { name: 'section_id', type: 'bigint', description: 'Id of the section' },
      { name: 'axis_id', type: 'bigint', description: 'Axis of the section' },
      { name: 'section_code', type: 'text', description: 'Code of the section' },
      { name: 'section_name', type: 'text', description: 'Name of the section' },
      { name: 'account_roots', type: 'text', description: 'Roots of account numbers, joined by semicolons' },
      { name: 'closed', type: 'boolean', description: 'Whether it is closed' },
    ],
  },
  vats: {
    description: 'VAT codes',
    columns: [
      { name: 'vat_id', type: 'bigint', description: 'Id of the VAT code' },
      { name: 'deductible_account_id', type: 'bigint', description: 'Account of deductible VAT, where it is known' },
      { name: 'collected_account_id', type: 'bigint', description: 'Account of collected VAT, where it is known' },
      { name: 'vat_code', type: 'text', description: 'The code' },
      { name: 'rate', type: 'numeric(18,6)', description: 'Percentage' },
      { name: 'vat_type', type: 'text', description: 'Its type, where it is known' },
      { name: 'exigibility', type: 'text', description: 'When it falls due, where it is known' },
      { name: 'type_code', type: 'text', description: 'Code of its type, where it is known' },
      { name: 'exigibility_code', type: 'text', description: 'Code of when it falls due, where it is known' },
    ],
  },
  movements: {
    description: 'Movements: a row for each debit or credit, with what its entry, journal and account say',
    columns: [
      { name: 'entry_id', type: 'bigint', description: 'Id of the entry' },
      { name: 'entry_date', type: 'date', description: 'Date of the entry' },
      { name: 'entry_due_date', type: 'date', description: 'Due date of the entry' },
      { name: 'accounted_at', type: 'date', description: 'Day on which it was booked' },
      { name: 'created_at', type: 'timestamptz', description: 'When the platform created it, UTC' },
      { name: 'validated_at', type: 'date', description: 'Day of its validation; absent for a draft' },
      { name: 'draft', type: 'boolean', description: 'Whether it awaits validation' },
      { name: 'exercice_id', type: 'bigint', description: 'Id of its fiscal year' },
      { name: 'journal_id', type: 'bigint', description: 'Id of its journal' },
      { name: 'journal_code', type: 'text', description: 'Code of the journal' },
      { name: 'journal_name', type: 'text', description: 'Name of the journal' },
      { name: 'journal_type', type: 'text', description: 'Code of its type: ACH' },
      { name: 'source', type: 'text', description: 'Source code' },
      { name: 'currency', type: 'text', description: 'Currency of the entry; amounts are in that of the books' },
      { name: 'currency_rate', type: 'numeric(18,6)', description: 'Price of one unit of that currency; absent in that of the books' },
      { name: 'entry_comment', type: 'text', description: 'Comment on the entry' },
      { name: 'ecriture_num', type: 'text', description: 'Number of the entry in its journal (EcritureNum); absent for a draft without one' },
      { name: 'piece_date', type: 'date', description: 'Date of the document (PieceDate), as filed; otherwise the date of the entry' },
      { name: 'movement_id', type: 'bigint', description: 'Id of the movement' },
      { name: 'account_id', type: 'bigint', description: 'Id of the account' },
      { name: 'account_number', type: 'text', description: 'Number of the account' },
      { name: 'account_name', type: 'text', description: 'Name of the account' },
      { name: 'auxiliary_number', type: 'text', description: 'Number of the third-party account (CompAuxNum), as filed' },
      { name: 'auxiliary_name', type: 'text', description: 'Name of the third-party account (CompAuxLib), as filed' },
      { name: 'description', type: 'text', description: 'Text of the movement' },
      { name: 'due_date', type: 'date', description: 'Due date of the movement' },
      { name: 'free_number', type: 'text', description: 'Free reference' },
      { name: 'invoice_number', type: 'text', description: 'Reference of the document' },
      { name: 'debit', type: 'numeric(18,2)', description: 'Amount in the currency of the books, 0 for a credit' },
      { name: 'credit', type: 'numeric(18,2)', description: 'Amount in the currency of the books, 0 for a debit' },
      { name: 'payment_code', type: 'text', description: 'Code of the mode of payment' },
      { name: 'lettering_state', type: 'text', description: 'none, partial or complete' },
      { name: 'lettering_code', type: 'text', description: 'Code that the matched movements of an account share' },
      { name: 'analytics', type: 'json', description: 'Analytic shares, in percent and in the currency of the books' },
      { name: 'attachments', type: 'json', description: 'entry and movement, each a map from file name to address' },
      { name: 'payment_id', type: 'bigint', description: 'Id of the mode of payment' },
      { name: 'third_party_code', type: 'text', description: 'Code of the partner that sent the entry' },
      { name: 'third_party_name', type: 'text', description: 'Name of the partner that sent the entry' },
      { name: 'partner_metadata', type: 'json', description: 'What that partner keeps with the entry' },
    ],
  },
} as const satisfies Record<string, LedgerTable>

export type LedgerTableName = keyof typeof declared

export const ledgerTables: Readonly<Record<LedgerTableName, LedgerTable>> = declared

/** Every table except `movements`. Such a table is sent as a whole, or left out if it has not changed. */
export type WholeTableName = Exclude<LedgerTableName, 'movements'>

export const wholeTables = Object.keys(declared).filter((name) => name !== 'movements') as WholeTableName[]

/** The names of a table's columns, as a type. */
export type ColumnName<Name extends LedgerTableName> = (typeof declared)[Name]['columns'][number]['name']
