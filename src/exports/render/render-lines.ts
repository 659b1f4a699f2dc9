/**
 * Merges the entries and movements of a snapshot into the lines of a file, chunk by chunk: for every format with a line
 * for each movement. Entries without movements have no line.
 */
import type { CopyRows } from '../../db/copy-rows.ts'
import { readId } from '../../formats/text-bytes.ts'
import type { ChunkBuffer } from '../chunk-buffer.ts'
import type { Tally } from './count-chunks.ts'

/** The lines of a format. The fields of a movement start at `base`. */
interface Lines {
  /** Upper bound of the bytes that `write` adds. */
  bytesMax(fields: Int32Array, base: number): number
  write(out: Uint8Array, at: number, bytes: Uint8Array, fields: Int32Array, base: number): number
}

interface Merge {
  entries: CopyRows
  movements: CopyRows
  /**
   * `ascending`: both ascend by entry id, and movements of other entries are skipped. `same`: both have the same order
   * of entries; an entry may come several times, each time with the movements that follow, and is counted each time.
   */
  order: 'ascending' | 'same'
  /** Offsets of columns among the fields of a row. */
  ofEntry: Readonly<Record<'id', number>>
  ofMovement: Readonly<Record<'entry_id' | 'debit' | 'credit', number>>
  lines: Lines
  /**
   * Sets the entry of the lines that follow, whose fields start at `base`. Its first movement is the row `row`.
   * @returns that row; another one if more movements were read
   */
  setEntry: (base: number, row: number) => number | Promise<number>
}

/** Where chunks end depends only on the rows. What belongs to one movement is in one chunk. */
export async function* renderLines(
  { entries, movements, order, ofEntry, ofMovement, lines, setEntry }: Merge,
  buffer: ChunkBuffer,
  tally: Tally,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const { id } = ofEntry
  const { entry_id: owner, debit, credit } = ofMovement
  // The first line takes a buffer: there may be none, and each buffer must become a chunk.
  let out: Uint8Array<ArrayBuffer> = new Uint8Array()
  let at = 0
  let row = 0
  while (await entries.fill()) {
    for (let base = 0, end = entries.count * entries.stride; base < end; base += entries.stride) {
      const entryId = readId(entries.bytes, entries.fields[base + id]!, entries.fields[base + id + 1]! - 1)
      for (let isStarted = false; ; row++) {
        if (row === movements.count) {
          row = 0
          if (!(await movements.fill())) break
        }
        const ownerId = idAt(movements, row, owner)
        if (ownerId !== entryId) {
          if (order === 'same' || ownerId > entryId) break
          continue
        }
        if (!isStarted) {
          // Nearly every entry is set at once, without a turn of the event loop.
          const first = setEntry(base, row)
          row = typeof first === 'number' ? first : await first
          tally.entries++
          isStarted = true
        }
        const { bytes, fields } = movements
        const from = row * movements.stride
        const bytesMax = lines.bytesMax(fields, from)
        if (at + bytesMax > out.length) {
          if (at > 0) yield out.subarray(0, at)
          out = buffer(bytesMax)
          at = 0
        }
        at = lines.write(out, at, bytes, fields, from)
        tally.add(bytes, fields, from + debit, from + credit)
      }
    }
  }
  // Movements after the last entry are not in the file, but must be read to free the connection.
  while (await movements.fill());
  if (at > 0) yield out.subarray(0, at)
}

/** The id in a column of a row. */
export function idAt({ bytes, fields, stride }: CopyRows, row: number, column: number): number {
  const field = row * stride + column
  return readId(bytes, fields[field]!, fields[field + 1]! - 1)
}
