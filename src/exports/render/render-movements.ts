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
import { readId, writePiece, writePlain } from '../../formats/text-bytes.ts'
import type { BlockCutter } from '../blocks/block-cutter.ts'
import type { ChunkBuffer } from '../chunk-buffer.ts'
import { framingBytes, framings } from './framing.ts'

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
  let out = buffer()
  let at = 0
  let rows = 0
  let entryRow = 0
  let entryBase = 0
  let entryId = 0
  let currentId = 0
  const { open, separator, terminator, close } = framingBytes(framings[form])
  at = writePiece(out, at, open)

  while (await movements.fill()) {
    for (let base = 0, end = movements.count * movements.stride; base < end; base += movements.stride) {
      const { bytes, fields } = movements
      const ownerId = readId(bytes, fields[base + belongsTo]!, fields[base + belongsTo + 1]! - 1)
      while (entryId < ownerId) {
        if (entryRow === entries.count) {
          entryRow = 0
          if (!(await entries.fill())) {
            entryId = Number.POSITIVE_INFINITY
            break
          }
        }
        entryBase = entryRow++ * entries.stride
        entryId = readId(
          entries.bytes,
          entries.fields[entryBase + id]!,
          entries.fields[entryBase + id + 1]! - 1,
        )
      }
      if (entryId !== ownerId) continue
      if (currentId !== entryId) {
        renderer.setEntry(entries.bytes, entries.fields, entryBase)
        currentId = entryId
        cutter?.beginEntry(entryId, rows, out, at)
      }

      const bytesMax = renderer.bytesMax(fields, base)
      if (at + bytesMax > out.length) {
        counted(rows)
        cutter?.endChunk(out, at)
        yield out.subarray(0, at)
        out = buffer(bytesMax)
        at = 0
      }
      if (rows > 0) at = writePlain(out, at, separator, 0, separator.length)
      at = renderer.write(out, at, bytes, fields, base)
      at = writePlain(out, at, terminator, 0, terminator.length)
      rows++
    }
  }
  // Entries after the last movement are not in the answer, but must be read to free the connection.
  while (await entries.fill());

  at = writePiece(out, at, close)
  counted(rows)
  cutter?.endChunk(out, at)
  if (at > 0) yield out.subarray(0, at)
}
