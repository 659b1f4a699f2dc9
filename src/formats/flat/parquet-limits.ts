/** What a Parquet file of these columns cannot hold; a CSV file holds everything. */
import { Buffer } from 'node:buffer'
import { ascii } from '../ascii.ts'
import type { Rows } from '../columns.ts'
import { UnsupportedByFormat } from '../unsupported.ts'

const { zero } = ascii

/** Of `DECIMAL(18,2)` and `DECIMAL(18,4)`. */
const digitsMax = 18

/** Bytes of a row of CSV that DuckDB reads, a buffer of its own. */
export const parquetRowBytesMax = 8 * 1024 * 1024

/**
 * Refuses a number of more digits than a column has.
 * @param field one number of COPY, or an array of them
 */
export function checkDigits(
  column: string,
  movementId: () => number,
  { bytes, fields }: Rows,
  field: number,
): void {
  const start = fields[field]!
  const end = fields[field + 1]! - 1
  let digits = 0
  for (let i = start; i < end; i++) {
    const isDigit = bytes[i]! >= zero && bytes[i]! <= zero + 9
    digits = isDigit ? digits + 1 : 0
    if (digits > digitsMax) {
      const stored = Buffer.from(bytes.subarray(start, end)).toString('latin1')
      throw new UnsupportedByFormat(
        `The column ${column} of a Parquet file holds numbers of ${digitsMax} digits, and that of movement ` +
          `${movementId()} is, in its smallest unit, ${stored}; a CSV file holds it`,
      )
    }
  }
}

export function checkRow(rowBytes: number, movementId: () => number): void {
  if (rowBytes <= parquetRowBytesMax) return
  throw new UnsupportedByFormat(
    `A Parquet file is made from rows of at most ${parquetRowBytesMax} bytes of CSV, and movement ` +
      `${movementId()} has ${rowBytes}; a CSV file holds it`,
  )
}
