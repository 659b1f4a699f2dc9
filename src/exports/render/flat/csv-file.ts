/**
 * The bytes of a CSV file (docs/spec/exports.md#csv-and-parquet-files), by two COPY streams. Memory does not grow with
 * the entries, except for the dictionary of what they refer to.
 */
import { CopyRows } from '../../../db/copy-rows.ts'
import { AppError } from '../../../errors.ts'
import { flatColumns } from '../../../formats/flat/columns.ts'
import { renderFlatDictionary } from '../../../formats/flat/dictionary.ts'
import {
  flatEntryColumns,
  flatEntryOffsets,
  flatMovementColumns,
  flatMovementOffsets,
  MovementRows,
  type RowOptions,
} from '../../../formats/flat/movement-rows.ts'
import { entrySegments } from '../../read/entry-segments.ts'
import { readFlatDictionary } from '../../read/flat-file.sql.ts'
import { copyEntries, copyMovements, findEntrySpans, ofFile } from '../../read/movements.sql.ts'
import type { Snapshot } from '../../read/snapshot.ts'
import { countChunks, Tally } from '../count-chunks.ts'
import type { FileOptions } from '../file-options.ts'
import { renderLines } from '../render-lines.ts'

const header = new TextEncoder().encode(`${flatColumns.map(({ name }) => name).join(',')}\r\n`)

export async function* renderCsvFile(
  snapshot: Snapshot,
  options: FileOptions,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const tally = new Tally()
  yield* countChunks(csvChunks(snapshot, options, tally, { forParquet: false }), tally, options.counted)
}

/** The header, then the rows of the selection by entry id, then movement id. */
export async function* csvChunks(
  { first, second }: Snapshot,
  { selection, buffer }: Pick<FileOptions, 'selection' | 'buffer'>,
  tally: Tally,
  rowOptions: RowOptions,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const resolved = ofFile(selection)
  const [dictionaryRows, spans] = await Promise.all([
    readFlatDictionary(first, selection),
    findEntrySpans(second, resolved),
  ])
  if (!dictionaryRows) throw new AppError('ERR-FOLDER-NOT-FOUND')
  const rows = new MovementRows(renderFlatDictionary(dictionaryRows), rowOptions)
  yield header
  for (const segment of entrySegments(spans)) {
    const inSegment = { ...resolved, exerciceIds: segment.exerciceIds, segments: [segment] }
    const entries = second.query(
      new CopyRows(copyEntries(inSegment, flatEntryColumns), flatEntryColumns.length),
    )
    const movements = first.query(
      new CopyRows(copyMovements(inSegment, flatMovementColumns), flatMovementColumns.length),
    )
    const merge = {
      entries,
      movements,
      order: 'ascending',
      ofEntry: flatEntryOffsets,
      ofMovement: flatMovementOffsets,
      lines: rows,
      setEntry: (base: number, row: number) => {
        rows.setEntry(entries.bytes, entries.fields, base)
        return row
      },
    } as const
    yield* renderLines(merge, buffer, tally)
  }
}
