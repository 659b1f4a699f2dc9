/** What readers of flat rows cannot hold: a Parquet file, and a table of a copy. A CSV file holds everything. */
import { Buffer } from 'node:buffer'
import { ascii } from '../ascii.ts'
import { offsetsOf, type Rows } from '../columns.ts'
import { idOf } from '../text-bytes.ts'
import { UnsupportedByFormat } from '../unsupported.ts'
import { flatMovementColumns } from './movement-rows.ts'

const { zero } = ascii
const of = offsetsOf(flatMovementColumns)

/** Of `numeric(18,2)`, `DECIMAL(18,2)` and `DECIMAL(18,4)`. */
const digitsMax = 18

/** Bytes of a row of CSV that DuckDB reads, a buffer of its own. */
export const parquetRowBytesMax = 8 * 1024 * 1024

/** Bytes of a row of COPY (docs/spec/ledgers.md#lines). */
export const copyRowBytesMax = 16 * 1024 * 1024

/** @throws {UnsupportedByFormat} if a Parquet file cannot hold the movement at `base` */
export function checkParquetRow(rowBytes: number, rows: Rows, base: number): void {
  const holds = (column: string, field: number) => {
    const stored = longNumberIn(rows, field)
    if (stored === undefined) return
    throw new UnsupportedByFormat(
      `The column ${column} of a Parquet file holds numbers of ${digitsMax} digits, and that of movement ` +
        `${idOf(rows, base + of.id)} is, in its smallest unit, ${stored}; a CSV file holds it`,
    )
  }
  holds('debit', base + of.debit)
  holds('credit', base + of.credit)
  holds('analytics', base + of.shares)
  if (rowBytes <= parquetRowBytesMax) return
  throw new UnsupportedByFormat(
    `A Parquet file is made from rows of at most ${parquetRowBytesMax} bytes of CSV, and movement ` +
      `${idOf(rows, base + of.id)} has ${rowBytes}; a CSV file holds it`,
  )
}

/** @throws {UnsupportedByFormat} if a row of COPY cannot hold the movement at `base`; it names the entry */
export function checkCopyRow(rowBytes: number, rows: Rows, base: number): void {
  const { fields } = rows
  const isShort = (field: number) => fields[field + 1]! - fields[field]! <= digitsMax
  const fits = (field: number) => isShort(field) || longNumberIn(rows, field) === undefined
  if (rowBytes <= copyRowBytesMax && fits(base + of.debit) && fits(base + of.credit)) return
  const limit = rowBytes > copyRowBytesMax ? `${copyRowBytesMax} bytes` : `amounts of ${digitsMax} digits`
  throw new UnsupportedByFormat(
    `A row of a movement holds at most ${limit}, and movement ${idOf(rows, base + of.id)} of entry ` +
      `${idOf(rows, base + of.entry_id)} has more; a CSV file holds it`,
  )
}

/** The field if a number in it has more digits than a column holds. @param field one number, or an array of them */
function longNumberIn({ bytes, fields }: Rows, field: number): string | undefined {
  const start = fields[field]!
  const end = fields[field + 1]! - 1
  let digits = 0
  for (let i = start; i < end; i++) {
    const isDigit = bytes[i]! >= zero && bytes[i]! <= zero + 9
    digits = isDigit ? digits + 1 : 0
    if (digits > digitsMax) return Buffer.from(bytes.subarray(start, end)).toString('latin1')
  }
  return undefined
}
