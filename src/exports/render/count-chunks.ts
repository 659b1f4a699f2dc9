/** What the file of a full export holds, told while it is rendered; the same for each format. */
import type { MoneySum } from '../../formats/money-sum.ts'

/** Debit and credit in minor units, exact. */
export interface FileTotals {
  /** Movements. */
  rows: number
  entries: number
  bytes: number
  debit: bigint
  credit: bigint
}

/** Counted by whoever renders, up to the chunk it yields. */
interface Tally {
  readonly movements: number
  readonly entries: number
  readonly debit: MoneySum
  readonly credit: MoneySum
}

/**
 * The same chunks.
 * @param counted told what the file holds up to the end of each chunk, before it is yielded; the last call has it all
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
