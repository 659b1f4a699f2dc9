/** Merges the entries and movements of a snapshot into the lines of a FEC, chunk by chunk. */
import type { CopyRows } from '../../../db/copy-rows.ts'
import { type FecLines, fecEntryOffsets, fecMovementOffsets } from '../../../formats/fec/lines/fec-lines.ts'
import { readId } from '../../../formats/text-bytes.ts'
import type { ChunkBuffer } from '../../chunk-buffer.ts'
import type { Tally } from '../count-chunks.ts'

const { entry_id: ofEntry, debit, credit } = fecMovementOffsets
const { id } = fecEntryOffsets

/**
 * Both streams have the same order of entries; an entry may come several times, each time with the movements that
 * follow, and is counted each time. `ascending`: both ascend by entry id, and movements of other entries are skipped. Where chunks end depends
 * only on the rows.
 */
export async function* renderFecEntries(
  entries: CopyRows,
  movements: CopyRows,
  merge: 'ascending' | 'same',
  lines: FecLines,
  buffer: ChunkBuffer,
  tally: Tally,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const header = lines.header()
  let out = buffer(header.length)
  out.set(header)
  let at = header.length
  let row = 0
  while (await entries.fill()) {
    for (let base = 0, end = entries.count * entries.stride; base < end; base += entries.stride) {
      const entryId = readId(entries.bytes, entries.fields[base + id]!, entries.fields[base + id + 1]! - 1)
      for (let isStarted = false; ; ) {
        if (row === movements.count) {
          row = 0
          if (!(await movements.fill())) break
        }
        const { bytes, fields } = movements
        const from = row * movements.stride
        const belongsTo = readId(bytes, fields[from + ofEntry]!, fields[from + ofEntry + 1]! - 1)
        if (belongsTo !== entryId) {
          if (merge === 'same' || belongsTo > entryId) break
          row++
          continue
        }
        if (!isStarted) {
          lines.setEntry(entries.bytes, entries.fields, base)
          // One whose lines are scattered over the file counts each time.
          tally.entries++
          isStarted = true
        }
        const bytesMax = lines.bytesMax(fields, from)
        if (at + bytesMax > out.length) {
          if (at > 0) yield out.subarray(0, at)
          out = buffer(bytesMax)
          at = 0
        }
        at = lines.write(out, at, bytes, fields, from)
        tally.add(bytes, fields, from + debit, from + credit)
        row++
      }
    }
  }
  // Movements after the last entry are not in the file, but must be read to free the connection.
  while (await movements.fill());
  if (at > 0) yield out.subarray(0, at)
}
