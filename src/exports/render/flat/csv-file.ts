/**
 * The bytes of a CSV file (docs/spec/exports.md#csv-and-parquet-files), by two COPY streams. Memory does not grow with
 * the entries, except for the dictionary of what they refer to.
 */
import { AppError } from '../../../errors.ts'
import { flatColumns } from '../../../formats/flat/columns.ts'
import { renderFlatDictionary } from '../../../formats/flat/dictionary.ts'
import {
  flatEntryColumns,
  flatMovementColumns,
  MovementRows,
  type RowOptions,
} from '../../../formats/flat/movement-rows.ts'
import { readFlatDictionary } from '../../read/flat-file.sql.ts'
import { findEntrySpans, ofFile } from '../../read/movements.sql.ts'
import type { Snapshot } from '../../read/snapshot.ts'
import type { Tally } from '../count-chunks.ts'
import type { FileOptions } from '../file-options.ts'
import { type LineFormat, renderSegments } from '../render-lines.ts'

const header = new TextEncoder().encode(`${flatColumns.map(({ name }) => name).join(',')}\r\n`)

export function renderCsvFile(
  snapshot: Snapshot,
  options: FileOptions,
  tally: Tally,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  return csvChunks(snapshot, options, tally, { forParquet: false })
}

/** The header, then the rows of the selection by entry id, then movement id. */
export async function* csvChunks(
  snapshot: Snapshot,
  { selection, buffer }: Pick<FileOptions, 'selection' | 'buffer'>,
  tally: Tally,
  rowOptions: RowOptions,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const resolved = ofFile(selection)
  const [dictionaryRows, spans] = await Promise.all([
    readFlatDictionary(snapshot.first, selection),
    findEntrySpans(snapshot.second, resolved),
  ])
  if (!dictionaryRows) throw new AppError('ERR-FOLDER-NOT-FOUND')
  const rows = new MovementRows(renderFlatDictionary(dictionaryRows), rowOptions)
  const format: LineFormat = {
    entryColumns: flatEntryColumns,
    movementColumns: flatMovementColumns,
    lines: rows,
    setEntry: (entries, base) => void rows.setEntry(entries, base),
  }
  yield header
  yield* renderSegments(snapshot, resolved, spans, format, buffer, tally)
}
