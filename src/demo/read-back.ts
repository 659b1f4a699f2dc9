import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'

export interface ReadBack {
  /** Of the file, hexadecimal. */
  sha256: string
  rows: number
  /** Sums in minor units. */
  debit: bigint
  credit: bigint
}

/** The first of its line: what stands before it are texts, whose quotes are escaped. */
const amounts = /"value":\{"credit":(-?\d+)(?:\.(\d+))?,"debit":(-?\d+)(?:\.(\d+))?/

/**
 * Reads a file of movements, one a line, with one chunk in memory at a time.
 * @throws {Error} for a line that is no movement
 */
export async function readBack(file: string): Promise<ReadBack> {
  const hash = createHash('sha256')
  const sums = { rows: 0, debit: 0n, credit: 0n }
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
    hash.update(chunk)
    const bytes = Buffer.concat([rest, chunk])
    const end = bytes.lastIndexOf('\n') + 1
    rest = bytes.subarray(end)
    // Not node:readline, which also ends a line at U+2028, a character that may stand in any text.
    for (const line of bytes.toString('utf8', 0, end).split('\n').slice(0, -1)) {
      const found = amounts.exec(line)
      if (!found) throw new Error(`Line ${sums.rows + 1} of ${file} is no movement`)
      sums.credit += minorUnits(found[1]!, found[2])
      sums.debit += minorUnits(found[3]!, found[4])
      sums.rows += 1
    }
  }
  if (rest.length > 0) throw new Error(`${file} ends in the middle of a line`)
  return { sha256: hash.digest('hex'), ...sums }
}

/** Digits put together, not multiplied: nothing is rounded. */
export function minorUnits(whole: string, decimals = ''): bigint {
  return BigInt(whole + decimals.padEnd(2, '0'))
}
