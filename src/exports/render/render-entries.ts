/**
 * Merges the entries and movements of a snapshot into entries that contain their movements, chunk by chunk. An entry
 * without movements has an empty array.
 *
 * Both streams have the same order of entries. `all`: every movement belongs to one of the entries, in any order.
 * `selected`: both ascend by entry id; movements of other entries are skipped (see movements.sql.ts).
 */
import type { CopyRows } from '../../db/copy-rows.ts'
import { ascii } from '../../formats/ascii.ts'
import type { Dictionary } from '../../formats/mad/dictionary.ts'
import { EntryRenderer, entryOffsets } from '../../formats/mad/entry.ts'
import type { FiledRenderer } from '../../formats/mad/filed.ts'
import { MovementRenderer, movementOffsets } from '../../formats/mad/movement.ts'
import { outputOf, writePiece } from '../../formats/mad/words.ts'
import { idOf } from '../../formats/text-bytes.ts'
import type { ChunkBuffer } from '../chunk-buffer.ts'
import type { Tally } from './count-chunks.ts'
import { type Framing, framingPieces } from './framing.ts'

const { comma } = ascii

const { entry_id: belongsTo, debit, credit } = movementOffsets
const { id } = entryOffsets

/**
 * Where chunks end depends only on the rows, as in renderMovements.
 * @param filed adds what a FEC says; the rows then have its columns
 */
export async function* renderEntries(
  entries: CopyRows,
  movements: CopyRows,
  merge: 'all' | 'selected',
  dictionary: Dictionary,
  framing: Framing,
  buffer: ChunkBuffer,
  tally: Tally,
  filed?: FiledRenderer,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const entry = new EntryRenderer(dictionary)
  const movement = new MovementRenderer(dictionary)
  const { open, separator, terminator, close } = framingPieces(framing)
  let out = outputOf(buffer())
  let at = 0
  let movementRow = 0
  const flush = (bytesNeeded: number): Uint8Array<ArrayBuffer> => {
    const full = out.bytes.subarray(0, at)
    out = outputOf(buffer(bytesNeeded))
    at = 0
    return full
  }
  at = writePiece(out, at, open)

  while (await entries.fill()) {
    for (let base = 0, end = entries.count * entries.stride; base < end; base += entries.stride) {
      const entryBytesMax = entry.bytesMax(entries, base) + (filed?.entryBytesMax(entries, base) ?? 0)
      if (at + entryBytesMax > out.bytes.length) yield flush(entryBytesMax)
      if (tally.entries > 0) at = writePiece(out, at, separator)
      at = entry.writeHead(out, at, entries, base)
      const entryId = idOf(entries, base + id)

      for (let written = 0; ; ) {
        if (movementRow === movements.count) {
          movementRow = 0
          if (!(await movements.fill())) break
        }
        const { bytes, fields, stride } = movements
        const row = movementRow * stride
        const ofEntry = idOf(movements, row + belongsTo)
        if (ofEntry !== entryId) {
          if (merge === 'all' || ofEntry > entryId) break
          tally.strays++
          movementRow++
          continue
        }
        const bytesMax =
          movement.bytesMax(movements, row) + (filed?.movementBytesMax(movements, row, entries, base) ?? 0)
        if (at + bytesMax > out.bytes.length) yield flush(bytesMax)
        if (written++ > 0) out.bytes[at++] = comma
        at = movement.write(out, at, movements, row)
        if (filed) at = filed.writeMovement(out, at, movements, row, entries, base)
        tally.add(bytes, fields, row + debit, row + credit)
        movementRow++
      }

      if (at + entryBytesMax > out.bytes.length) yield flush(entryBytesMax)
      at = entry.writeTail(out, at, entries, base)
      if (filed) at = filed.writeNumber(out, at, entries, base)
      at = writePiece(out, at, terminator)
      tally.entries++
    }
  }
  // Movements after the last entry are not in the answer, but must be read to free the connection.
  tally.strays += movements.count - movementRow
  while (await movements.fill()) tally.strays += movements.count

  at = writePiece(out, at, close)
  if (at > 0) yield out.bytes.subarray(0, at)
}
