/**
 * Merges the entries and movements of a snapshot into rows of CSV, chunk by chunk. Both streams ascend by entry id.
 * Movements of other entries are skipped; entries without movements have no row.
 */
import type { CopyRows } from '../../../db/copy-rows.ts'
import {
  flatEntryOffsets,
  flatMovementOffsets,
  type MovementRows,
} from '../../../formats/flat/movement-rows.ts'
import { readId } from '../../../formats/text-bytes.ts'
import type { ChunkBuffer } from '../../chunk-buffer.ts'
import type { Tally } from '../count-chunks.ts'

const { entry_id: ofEntry, debit, credit } = flatMovementOffsets
const { id } = flatEntryOffsets

/** Where chunks end depends only on the rows. */
export async function* renderRows(
  entries: CopyRows,
  movements: CopyRows,
  rows: MovementRows,
  buffer: ChunkBuffer,
  tally: Tally,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  // The first row takes a buffer: a segment may have none, and each buffer must become a chunk.
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
        const { bytes, fields } = movements
        const from = row * movements.stride
        const belongsTo = readId(bytes, fields[from + ofEntry]!, fields[from + ofEntry + 1]! - 1)
        if (belongsTo > entryId) break
        if (belongsTo < entryId) continue
        if (!isStarted) {
          rows.setEntry(entries.bytes, entries.fields, base)
          tally.entries++
          isStarted = true
        }
        const bytesMax = rows.bytesMax(fields, from)
        if (at + bytesMax > out.length) {
          if (at > 0) yield out.subarray(0, at)
          out = buffer(bytesMax)
          at = 0
        }
        at = rows.write(out, at, bytes, fields, from)
        tally.add(bytes, fields, from + debit, from + credit)
      }
    }
  }
  // Movements after the last entry are not in the file, but must be read to free the connection.
  while (await movements.fill());
  if (at > 0) yield out.subarray(0, at)
}
