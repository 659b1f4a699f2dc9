/**
 * The columns of flat files (CSV and Parquet). They are those of the table `movements` of a ledger, in the same order
 * and with the same descriptions, in the types of DuckDB, which writes the Parquet file.
 */

import { type ColumnType, ledgerTables } from '../../../packages/contract/src/ledger-tables.ts'
import { UnsupportedByFormat } from '../file-formats.ts'
import { offsetsOf } from '../rows.ts'
import type { Rows } from '../text-bytes.ts'
import { flatMovementColumns } from './movement-rows.ts'

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

/** Values can exceed the limits of a Parquet file, or of the table of a copy. A CSV file has no limits. */
const column = offsetsOf(flatMovementColumns)

/** The most digits that `numeric(18,2)`, `DECIMAL(18,2)` and `DECIMAL(18,4)` hold. */
const digitsMax = 18

/** The most bytes of a CSV row that DuckDB reads for a Parquet file: the size of its buffer. */
export const parquetRowBytesMax = 8 * 1024 * 1024

/** The most bytes of a row of COPY (docs/spec/ledgers.md#lines). */
export const copyRowBytesMax = 16 * 1024 * 1024

/** @throws {UnsupportedByFormat} if a Parquet file cannot hold the movement */
export function checkParquetRow(rowBytes: number, rows: Rows): void {
  const holds = (name: string, field: number) => {
    const stored = longNumberIn(rows, field)
    if (stored === undefined) return
    throw new UnsupportedByFormat(
      `The column ${name} of a Parquet file holds numbers of ${digitsMax} digits, and that of movement ` +
        `${rows.id(column.id)} is, in its smallest unit, ${stored}; a CSV file holds it`,
    )
  }
  holds('debit', column.debit)
  holds('credit', column.credit)
  holds('analytics', column.shares)
  if (rowBytes <= parquetRowBytesMax) return
  throw new UnsupportedByFormat(
    `A Parquet file is made from rows of at most ${parquetRowBytesMax} bytes of CSV, and movement ` +
      `${rows.id(column.id)} has ${rowBytes}; a CSV file holds it`,
  )
}

/** @throws {UnsupportedByFormat} naming the entry, if a row of COPY cannot hold the movement */
export function checkCopyRow(rowBytes: number, rows: Rows): void {
  const fits = (field: number) => longNumberIn(rows, field) === undefined
  if (rowBytes <= copyRowBytesMax && fits(column.debit) && fits(column.credit)) return
  const limit = rowBytes > copyRowBytesMax ? `${copyRowBytesMax} bytes` : `amounts of ${digitsMax} digits`
  throw new UnsupportedByFormat(
    `A row of a movement holds at most ${limit}, and movement ${rows.id(column.id)} of entry ` +
      `${rows.id(column.entry_id)} has more; a CSV file holds it`,
  )
}

/**
 * The text of `field` if a number in it has more digits than a column holds. @param field one number, or an array of
 * numbers
 */
function longNumberIn(rows: Rows, field: number): string | undefined {
  // The usual case: a field this short cannot have too many digits.
  if (rows.bytesIn(1, field) <= digitsMax + 1) return undefined
  const text = rows.bytes.toString('latin1', rows.start(field), rows.end(field))
  return tooManyDigits.test(text) ? text : undefined
}

const tooManyDigits = new RegExp(`\\d{${digitsMax + 1}}`)
