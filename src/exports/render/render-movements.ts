/**
 * Merges the movements and entries of a snapshot into the bytes of the answer, chunk by chunk.
 *
 * Both streams ascend by entry id. The answer has neither movements whose entry was not read nor entries without
 * movements (see movements.sql.ts).
 */
import type { CopyRows } from '../../db/copy-rows.ts'
import type { JsonForm } from '../../formats/file-formats.ts'
import { entryOffsets } from '../../formats/mad/entry.ts'
import { type MovementRenderer, movementOffsets } from '../../formats/mad/movement.ts'
import { outputOf, writePiece } from '../../formats/mad/words.ts'
import { idOf } from '../../formats/text-bytes.ts'
import type { BlockCutter } from '../blocks/block-cutter.ts'
import type { ChunkBuffer } from '../chunk-buffer.ts'
import { framingPieces, framings } from './framing.ts'

const { entry_id: belongsTo } = movementOffsets
const { id } = entryOffsets

/**
 * Where chunks end depends only on the rows, not on their arrival, so that compressed answers are the same each time.
 * @param counted called with the number of movements so far, before each chunk
 * @param cutter hashes the lines in blocks; for NDJSON only
 */
export async function* renderMovements(
  movements: CopyRows,
  entries: CopyRows,
  renderer: MovementRenderer,
  form: JsonForm,
  buffer: ChunkBuffer,
  counted: (rows: number) => void,
  cutter?: Pick<BlockCutter, 'beginEntry' | 'endChunk'>,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let out = outputOf(buffer())
  let at = 0
  let rows = 0
  let entryRow = 0
  let entryBase = 0
  let entryId = 0
  let currentId = 0
  const { open, separator, terminator, close } = framingPieces(framings[form])
  at = writePiece(out, at, open)

  while (await movements.fill()) {
    for (let base = 0, end = movements.count * movements.stride; base < end; base += movements.stride) {
      const ownerId = idOf(movements, base + belongsTo)
      while (entryId < ownerId) {
        if (entryRow === entries.count) {
          entryRow = 0
          if (!(await entries.fill())) {
            entryId = Number.POSITIVE_INFINITY
            break
          }
        }
        entryBase = entryRow++ * entries.stride
        entryId = idOf(entries, entryBase + id)
      }
      if (entryId !== ownerId) continue
      if (currentId !== entryId) {
        renderer.setEntry(entries, entryBase)
        currentId = entryId
        cutter?.beginEntry(entryId, rows, out.bytes, at)
      }

      const bytesMax = renderer.bytesMax(movements, base)
      if (at + bytesMax > out.bytes.length) {
        counted(rows)
        cutter?.endChunk(out.bytes, at)
        yield out.bytes.subarray(0, at)
        out = outputOf(buffer(bytesMax))
        at = 0
      }
      if (rows > 0) at = writePiece(out, at, separator)
      at = renderer.write(out, at, movements, base)
      at = writePiece(out, at, terminator)
      rows++
    }
  }
  // Entries after the last movement are not in the answer, but must be read to free the connection.
  while (await entries.fill());

  at = writePiece(out, at, close)
  counted(rows)
  cutter?.endChunk(out.bytes, at)
  if (at > 0) yield out.bytes.subarray(0, at)
}
