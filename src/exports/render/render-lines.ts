/**
 * Merges the entries and movements of a snapshot into the lines of a file, chunk by chunk: for every format with a line
 * for each movement. Entries without movements have no line.
 */
import { CopyRows } from '../../db/copy-rows.ts'
import type { Rows } from '../../formats/columns.ts'
import { idOf } from '../../formats/text-bytes.ts'
import type { BlockCutter } from '../blocks/block-cutter.ts'
import type { ChunkBuffer } from '../chunk-buffer.ts'
import type { EntryColumn, MovementColumn } from '../read/columns.sql.ts'
import { type ExerciceSpan, entrySegments } from '../read/entry-segments.ts'
import { copyEntries, copyMovements, type ResolvedSelection } from '../read/movements.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import type { Tally } from './count-chunks.ts'

/** A format with a line for each movement. */
export interface LineFormat {
  /** `id` is one of them. */
  entryColumns: readonly EntryColumn[]
  /** `entry_id`, `debit` and `credit` are among them. */
  movementColumns: readonly MovementColumn[]
  lines: {
    /** Upper bound of the bytes that `write` adds. The fields of the movement start at `base`. */
    bytesMax(movements: Rows, base: number): number
    write(out: Uint8Array, at: number, movements: Rows, base: number): number
  }
  /**
   * Sets the entry of the lines that follow, whose fields start at `base`. Its first movement is the row `row`.
   * @returns the row where that movement is then, if more movements were read
   */
  setEntry(entries: CopyRows, base: number, movements: CopyRows, row: number): Promise<number> | undefined
}

/** The lines of a selection, by entry id. */
export async function* renderSegments(
  snapshot: Snapshot,
  resolved: ResolvedSelection,
  spans: ExerciceSpan[],
  format: LineFormat,
  buffer: ChunkBuffer,
  tally: Tally,
  cutter?: BlockCutter,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (const segment of entrySegments(spans)) {
    const inSegment = { ...resolved, exerciceIds: segment.exerciceIds, segments: [segment] }
    const statements = {
      entries: copyEntries(inSegment, format.entryColumns),
      movements: copyMovements(inSegment, format.movementColumns),
      order: 'ascending',
    } as const
    yield* renderLines(snapshot, statements, format, buffer, tally, cutter)
  }
}

interface Statements {
  entries: string
  movements: string | string[]
  /**
   * `ascending`: both ascend by entry id, and movements of other entries are skipped. `same`: both have the same order
   * of entries; an entry may come several times, each time with the movements that follow, and is counted each time.
   */
  order: 'ascending' | 'same'
}

/**
 * Where chunks end depends only on the rows. What belongs to one movement is in one chunk.
 * @param cutter hashes the lines in blocks
 */
export async function* renderLines(
  { first, second }: Pick<Snapshot, 'first' | 'second'>,
  { order, ...statements }: Statements,
  { entryColumns, movementColumns, lines, setEntry }: LineFormat,
  buffer: ChunkBuffer,
  tally: Tally,
  cutter?: BlockCutter,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const entries = second.query(new CopyRows(statements.entries, entryColumns.length))
  const movements = first.query(new CopyRows(statements.movements, movementColumns.length))
  const id = entryColumns.indexOf('id')
  const owner = movementColumns.indexOf('entry_id')
  const debit = movementColumns.indexOf('debit')
  const credit = movementColumns.indexOf('credit')
  // The first line takes a buffer: there may be none, and each buffer must become a chunk.
  let out: Uint8Array<ArrayBuffer> = new Uint8Array()
  let at = 0
  let row = 0
  while (await entries.fill()) {
    for (let base = 0, end = entries.count * entries.stride; base < end; base += entries.stride) {
      const entryId = idOf(entries, base + id)
      for (let isStarted = false; ; row++) {
        if (row === movements.count) {
          row = 0
          if (!(await movements.fill())) break
        }
        const ownerId = idOf(movements, row * movements.stride + owner)
        if (ownerId !== entryId) {
          if (order === 'same' || ownerId > entryId) break
          continue
        }
        if (!isStarted) {
          // Nearly every entry is set at once, without a turn of the event loop.
          const moved = setEntry(entries, base, movements, row)
          if (moved) row = await moved
          tally.entries++
        }
        const { bytes, fields } = movements
        const from = row * movements.stride
        const bytesMax = lines.bytesMax(movements, from)
        if (at + bytesMax > out.length) {
          cutter?.endChunk(out, at)
          if (at > 0) yield out.subarray(0, at)
          out = buffer(bytesMax)
          at = 0
        }
        if (!isStarted) cutter?.beginEntry(entryId, tally.movements, out, at)
        isStarted = true
        at = lines.write(out, at, movements, from)
        tally.add(bytes, fields, from + debit, from + credit)
      }
    }
  }
  // Movements after the last entry are not in the file, but must be read to free the connection.
  while (await movements.fill());
  cutter?.endChunk(out, at)
  if (at > 0) yield out.subarray(0, at)
}
