/**
 * The columns of flat files, CSV and Parquet, in their order: one row per movement. The header of a CSV file, the types
 * of a Parquet file and the table of docs/spec/exports.md#csv-and-parquet-files all come from here.
 */

/** In the words of DuckDB, which writes the Parquet file. */
export type FlatType =
  | 'BIGINT'
  | 'DATE'
  | 'TIMESTAMP'
  | 'BOOLEAN'
  | 'VARCHAR'
  | 'DECIMAL(18,2)'
  | 'DECIMAL(18,6)'
  | typeof sharesType

interface FlatColumn {
  name: string
  type: FlatType
  description: string
}

export const sharesType =
  'STRUCT(axis_code VARCHAR, section_code VARCHAR, amount DECIMAL(18,2), rate DECIMAL(18,4))[]'

// biome-ignore format: a table
export const flatColumns: readonly FlatColumn[] = [
  { name: 'entry_id', type: 'BIGINT', description: 'Id of the entry' },
  { name: 'entry_date', type: 'DATE', description: 'Date of the entry' },
  { name: 'entry_due_date', type: 'DATE', description: 'Due date of the entry' },
  { name: 'accounted_at', type: 'DATE', description: 'Day on which it was booked' },
  { name: 'created_at', type: 'TIMESTAMP', description: 'When the platform created it, UTC' },
  { name: 'validated_at', type: 'DATE', description: 'Day of its validation; absent for a draft' },
  { name: 'draft', type: 'BOOLEAN', description: 'Whether it awaits validation' },
  { name: 'exercice_id', type: 'BIGINT', description: 'Id of its fiscal year' },
  { name: 'journal_id', type: 'BIGINT', description: 'Id of its journal' },
  { name: 'journal_code', type: 'VARCHAR', description: 'Code of the journal' },
  { name: 'journal_name', type: 'VARCHAR', description: 'Name of the journal' },
  { name: 'journal_type', type: 'VARCHAR', description: 'Code of its [type](resources.md#journal): `ACH`' },
  { name: 'source', type: 'VARCHAR', description: '[Source code](resources.md#source-codes)' },
  { name: 'currency', type: 'VARCHAR', description: 'Currency of the entry; amounts are in that of the books' },
  { name: 'currency_rate', type: 'DECIMAL(18,6)', description: 'Price of one unit of that currency; absent in that of the books' },
  { name: 'entry_comment', type: 'VARCHAR', description: 'Comment on the entry' },
  { name: 'ecriture_num', type: 'VARCHAR', description: 'Number of the entry in its journal (EcritureNum); absent for a draft without one' },
  { name: 'piece_date', type: 'DATE', description: 'Date of the document (PieceDate), as filed; otherwise the date of the entry' },
  { name: 'movement_id', type: 'BIGINT', description: 'Id of the movement' },
  { name: 'account_id', type: 'BIGINT', description: 'Id of the account' },
  { name: 'account_number', type: 'VARCHAR', description: 'Number of the account' },
  { name: 'account_name', type: 'VARCHAR', description: 'Name of the account' },
  { name: 'auxiliary_number', type: 'VARCHAR', description: 'Number of the third-party account (CompAuxNum), as filed' },
  { name: 'auxiliary_name', type: 'VARCHAR', description: 'Name of the third-party account (CompAuxLib), as filed' },
  { name: 'description', type: 'VARCHAR', description: 'Text of the movement' },
  { name: 'due_date', type: 'DATE', description: 'Due date of the movement' },
  { name: 'free_number', type: 'VARCHAR', description: 'Free reference' },
  { name: 'invoice_number', type: 'VARCHAR', description: 'Reference of the document' },
  { name: 'debit', type: 'DECIMAL(18,2)', description: 'Amount in the currency of the books, 0 for a credit' },
  { name: 'credit', type: 'DECIMAL(18,2)', description: 'Amount in the currency of the books, 0 for a debit' },
  { name: 'payment_code', type: 'VARCHAR', description: 'Code of the [mode of payment](resources.md#payment)' },
  { name: 'lettering_state', type: 'VARCHAR', description: '`none`, `partial` or `complete`' },
  { name: 'lettering_code', type: 'VARCHAR', description: 'Code that the matched movements of an account share' },
  { name: 'analytics', type: sharesType, description: 'Analytic shares, in percent and in the currency of the books' },
  { name: 'attachments', type: 'VARCHAR', description: 'JSON: `entry` and `movement`, each a map from file name to address' },
]
