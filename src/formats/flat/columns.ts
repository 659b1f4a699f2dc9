/**
 * The columns of flat files, CSV and Parquet: those of the table `movements` of a ledger, in its order and with its
 * descriptions, in the types of DuckDB, which writes the Parquet file.
 */
import { type ColumnType, ledgerTables } from '../../../packages/contract/src/ledger-tables.ts'

export const sharesType =
  'STRUCT(axis_code VARCHAR, section_code VARCHAR, amount DECIMAL(18,2), rate DECIMAL(18,4))[]'

const types: Record<ColumnType, string> = {
  bigint: 'BIGINT',
  date: 'DATE',
  timestamptz: 'TIMESTAMP',
  boolean: 'BOOLEAN',
  'numeric(18,2)': 'DECIMAL(18,2)',
  'numeric(18,6)': 'DECIMAL(18,6)',
  text: 'VARCHAR',
  json: 'VARCHAR',
}

export const flatColumns = ledgerTables.movements.columns.map(({ name, type, description }) => ({
  name,
  type: name === 'analytics' ? sharesType : types[type],
  description,
}))
