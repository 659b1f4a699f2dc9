/**
 * Merges the movements and the entries of a snapshot into the bytes of the answer, chunk by chunk.
 *
 * Both come in ascending entry id. A movement whose entry is not among the entries is not part of the answer, nor is
 * an entry without movements (see movements.sql.ts).
 */

import type { CopyRows } from '../../db/copy-rows.ts'
import { ascii } from '../../formats/ascii.ts'
import type { MovementRenderer } from '../../formats/mad/movement.ts'
import { readId } from '../../formats/text-bytes.ts'

const { bracketClose, bracketOpen, comma, lineFeed } = ascii

/** An array of movements (or of other items), or one a line. */
export type ItemsForm = 'json' | 'ndjson'

/**
 * Where chunks end depends on the rows alone, not on how they arrive: a compressed answer is the same each time, too.
 * @param chunkBytes how full a chunk may get; a single movement that needs more gets a chunk of its own
 * @param room gives at least so many bytes to render into
 * @param counted told the number of movements so far, before each chunk
 */
export async function* renderMovements(
  movements: CopyRows,
  entries: CopyRows,
  renderer: MovementRenderer,
  form: ItemsForm,
  chunkBytes: number,
  room: (bytes: number) => Uint8Array<ArrayBuffer>,
  counted: (rows: number) => void,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let out = room(chunkBytes)
  let at = 0
  let rows = 0
  let entryRow = 0
  let entryBase = 0
  let entryId = 0
  let takenId = 0
  if (form === 'json') out[at++] = bracketOpen

  while (await movements.fill()) {
    for (let base = 0, end = movements.count * movements.stride; base < end; base += movements.stride) {
      const { bytes, fields } = movements
      const wanted = readId(bytes, fields[base]!, fields[base + 1]! - 1)
      while (entryId < wanted) {
        if (entryRow === entries.count) {
          entryRow = 0
          if (!(await entries.fill())) {
            entryId = Number.POSITIVE_INFINITY
            break
          }
        }
        entryBase = entryRow++ * entries.stride
        entryId = readId(entries.bytes, entries.fields[entryBase]!, entries.fields[entryBase + 1]! - 1)
      }
      if (entryId !== wanted) continue
      if (takenId !== entryId) {
        renderer.takeEntry(entries.bytes, entries.fields, entryBase)
        takenId = entryId
      }

      const bytesMax = renderer.bytesMax(fields, base)
      if (at + bytesMax > out.length) {
        counted(rows)
        yield out.subarray(0, at)
        out = room(Math.max(chunkBytes, bytesMax))
        at = 0
      }
      if (form === 'json' && rows > 0) out[at++] = comma
      at = renderer.write(out, at, bytes, fields, base)
      if (form === 'ndjson') out[at++] = lineFeed
      rows++
    }
  }
  // Entries behind the last movement: none of ours, but the connection is free only when they are read.
  while (await entries.fill());

  if (form === 'json') out[at++] = bracketClose
  counted(rows)
  if (at > 0) yield out.subarray(0, at)
}
