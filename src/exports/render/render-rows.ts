/**
 * Merges the entries and movements of a snapshot into the items of an answer or a file, chunk by chunk, for every
 * format: a line for each movement, or an entry around its movements.
 */
import { CopyRows } from '../../db/copy-rows.ts'
import type { FormatOptions } from '../../formats/file-formats.ts'
import { MoneySum } from '../../formats/minor-units.ts'
import { type Output, outputOf, pieceOf, type Rows, writePiece } from '../../formats/text-bytes.ts'
import type { EntryRange } from '../../ledger/changes/entry-ranges.ts'
import type { BlockCutter } from '../blocks/block-cutter.ts'
import type { ChunkBuffer, Chunks } from '../chunks.ts'
import {
  copySelected,
  type ExerciceSpan,
  entrySegments,
  type ReadColumns,
  type ResolvedSelection,
} from '../read/movements.sql.ts'
import { beginLookUps, copyRanges } from '../read/ranges.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import type { Selection } from '../selection.ts'
import { type Framing, itemFramings } from './framing.ts'

/**
 * Writes items. Functions that write return the position after the last byte. The columns of entries include `id`;
 * those of movements include `entry_id`, `debit` and `credit`.
 */
export interface RowFormat extends ReadColumns {
  /** The most bytes that `write` may add. */
  bytesMax(movements: Rows, entries: Rows): number
  write(out: Output, at: number, movements: Rows, entries: Rows): number
  /**
   * Sets the entry of the movements that follow; the present row is the first of them.
   * @returns a promise if it has to read more
   */
  setEntry?(entries: Rows, movements: CopyRows): unknown
  /**
   * Given if items are entries that contain their movements. If absent, items are movements, and an entry without
   * movements has no item.
   */
  entry?: {
    bytesMax(entries: Rows): number
    /** Writes an entry up to its first movement. */
    writeHead(out: Output, at: number, entries: Rows): number
    /** Writes the end of an entry, after its last movement. */
    writeTail(out: Output, at: number, entries: Rows): number
  }
}

export interface Rendering {
  buffer: ChunkBuffer
  /** Counts rendered entries and movements, and sums amounts for files. */
  tally: Tally
  /** The text around and between the items; if absent, there is none. */
  framing?: Framing
  /** Hashes the lines of movements in blocks. */
  cutter?: Pick<BlockCutter, 'beginEntry' | 'endChunk'> | undefined
}

/** The items of a selection, by entry id. */
export async function* renderSegments(
  snapshot: Snapshot,
  resolved: ResolvedSelection,
  spans: ExerciceSpan[],
  format: RowFormat,
  rendering: Rendering,
): Chunks {
  for (const segment of entrySegments(spans)) {
    const inSegment = { ...resolved, exerciceIds: segment.exerciceIds, segments: [segment] }
    yield* renderRows(snapshot, copySelected(inSegment, format), format, rendering)
  }
}

/** The items of a selection in some ranges of entries, by entry id. */
export async function* renderRanges(
  snapshot: Snapshot,
  resolved: ResolvedSelection,
  ranges: readonly EntryRange[],
  format: RowFormat,
  rendering: Rendering,
): Chunks {
  await Promise.all([snapshot.first, snapshot.second].map(beginLookUps))
  yield* renderRows(snapshot, copyRanges(ranges, resolved, format), format, rendering)
}

/** Statements for the columns of a format, to be run one after the other. */
interface Statements {
  entries: string | string[]
  movements: string | string[]
  /**
   * `ascending` (the default): both ascend by entry id, and movements of other entries are skipped. `same`: both have
   * the same order of entries; an entry may come several times, each time with the movements that follow it, and is
   * counted each time.
   */
  order?: 'ascending' | 'same'
}

const comma = pieceOf(',')

/**
 * Renders rows into chunks. Where chunks end depends only on the rows, not on when they arrive. All bytes of one
 * movement are in one chunk. Movements that belong to none of the entries are left out of the answer, but are read to
 * free the connection.
 */
export async function* renderRows(
  { first, second }: Pick<Snapshot, 'first' | 'second'>,
  statements: Statements,
  format: RowFormat,
  { buffer, tally, framing = itemFramings.json, cutter }: Rendering,
): Chunks {
  const { entryColumns, movementColumns, entry } = format
  const entries = second.query(new CopyRows(statements.entries, entryColumns.length))
  const movements = first.query(new CopyRows(statements.movements, movementColumns.length))
  const [id, owner] = [entryColumns.indexOf('id'), movementColumns.indexOf('entry_id')]
  const [debit, credit] = [movementColumns.indexOf('debit'), movementColumns.indexOf('credit')]
  const [open, separator, terminator] = [framing.open, framing.separator, framing.terminator].map(pieceOf)
  // Without an opening text, no buffer is taken before the first item: there may be no item, and each buffer must become a
  // chunk.
  let out = outputOf(open!.length > 0 ? buffer() : new Uint8Array())
  let at = writePiece(out, 0, open!)
  let isMovement = await movements.fill()
  while (entries.next() || (await entries.fill())) {
    const entryId = entries.id(id)
    const entryBytesMax = entry?.bytesMax(entries) ?? 0
    if (entry) {
      if (at + entryBytesMax > out.bytes.length) {
        cutter?.endChunk(out.bytes, at)
        if (at > 0) yield out.bytes.subarray(0, at)
        out = outputOf(buffer(entryBytesMax))
        at = 0
      }
      if (tally.entries > 0) at = writePiece(out, at, separator!)
      at = entry.writeHead(out, at, entries)
    }
    let isFirst = true
    for (; isMovement; isMovement = movements.next() || (await movements.fill())) {
      const ownerId = movements.id(owner)
      if (ownerId !== entryId) {
        if (statements.order === 'same' || ownerId > entryId) break
        tally.strays++
        continue
      }
      if (isFirst) {
        // Nearly every entry is set at once, without a turn of the event loop.
        const reading = format.setEntry?.(entries, movements)
        if (reading) await reading
      }
      const bytesMax = format.bytesMax(movements, entries)
      if (at + bytesMax > out.bytes.length) {
        cutter?.endChunk(out.bytes, at)
        if (at > 0) yield out.bytes.subarray(0, at)
        out = outputOf(buffer(bytesMax))
        at = 0
      }
      if (isFirst) cutter?.beginEntry(entryId, tally.movements, out.bytes, at)
      if (entry ? !isFirst : tally.movements > 0) at = writePiece(out, at, entry ? comma : separator!)
      at = format.write(out, at, movements, entries)
      if (!entry) at = writePiece(out, at, terminator!)
      tally.movements++
      tally.debit?.add(movements, debit)
      tally.credit?.add(movements, credit)
      isFirst = false
    }
    if (entry) {
      if (at + entryBytesMax > out.bytes.length) {
        cutter?.endChunk(out.bytes, at)
        if (at > 0) yield out.bytes.subarray(0, at)
        out = outputOf(buffer(entryBytesMax))
        at = 0
      }
      at = writePiece(out, entry.writeTail(out, at, entries), terminator!)
    }
    if (entry || !isFirst) tally.entries++
  }
  for (; isMovement; isMovement = movements.next() || (await movements.fill())) tally.strays++
  at = writePiece(out, at, pieceOf(framing.close))
  cutter?.endChunk(out.bytes, at)
  if (at > 0) yield out.bytes.subarray(0, at)
}

/** The input of a full export's renderer, in any format. */
export interface FileOptions extends FormatOptions {
  selection: Selection
  exportId: string
  /** Version of the interface. */
  version: string
  /** Whether the file has the personal data of employees. */
  withEmployees: boolean
  /** Epoch milliseconds of the snapshot. */
  now: number
  buffer: ChunkBuffer
  /** Aborted when the attempt stops, so that other processes stop, too. The snapshot is then closed as well. */
  stopped?: AbortSignal | undefined
}

/**
 * Renders a file.
 * @throws {AppError} ERR-FOLDER-NOT-FOUND; before the first chunk, if chunks have at least some hundred bytes
 * @throws {UnsupportedByFormat} if the books do not fit the format
 */
export type FileRenderer = (snapshot: Snapshot, options: FileOptions, tally: FileTally) => Chunks

/** Counts of what a format left out or altered, for the status of the export: `{"drafts":2}`. */
export type FileNotes = Readonly<Record<string, number>>

/** What a renderer has counted, up to the chunk that it yields. */
export class Tally {
  movements = 0
  entries = 0
  /** Movements that were read but belong to none of the entries. */
  strays = 0
  /** Sums of the movements, in minor units. Only a {@link FileTally} has them. */
  readonly debit?: MoneySum
  readonly credit?: MoneySum
}

/** What the renderer of a file has counted, or has left out. */
export class FileTally extends Tally {
  override readonly debit = new MoneySum()
  override readonly credit = new MoneySum()
  /** Codes of the analytic axes that the format has no columns for. */
  axesLeftOut: string[] = []
  /** Set after the last chunk at the latest; undefined for formats without notes. */
  notes: FileNotes | undefined
}
