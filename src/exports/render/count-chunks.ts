/** Counts the contents of a full export's file while it is rendered, in any format. */
import { MoneySum } from '../../formats/money-sum.ts'

/** Debit and credit in minor units, exact. */
export interface FileTotals {
  /** Movements. */
  rows: number
  entries: number
  bytes: number
  debit: bigint
  credit: bigint
}

/** What the renderer has counted, up to the chunk that it yields. */
export class Tally {
  movements = 0
  entries = 0
  /** Movements that were read but belong to none of the entries; of formats that render entries. */
  strays = 0
  readonly debit = new MoneySum()
  readonly credit = new MoneySum()

  /** Counts a movement. @param debit position of its debit in `fields` @param credit of its credit */
  add(bytes: Uint8Array, fields: Int32Array, debit: number, credit: number): void {
    this.movements++
    this.debit.add(bytes, fields[debit]!, fields[debit + 1]! - 1)
    this.credit.add(bytes, fields[credit]!, fields[credit + 1]! - 1)
  }
}

/**
 * Yields the same chunks.
 * @param counted called before each chunk is yielded, with the totals up to its end; the last call has all of them
 */
export async function* countChunks(
  chunks: AsyncIterable<Uint8Array<ArrayBuffer>>,
  tally: Tally,
  counted: (totals: FileTotals) => void,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    counted({
      rows: tally.movements,
      entries: tally.entries,
      bytes,
      debit: tally.debit.total,
      credit: tally.credit.total,
    })
    yield chunk
  }
}
