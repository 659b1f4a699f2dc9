/**
 * The bytes of a CSV file (docs/spec/exports.md#csv-and-parquet-files), by two COPY streams. Memory does not grow with
 * the entries, except for the dictionary of what they refer to.
 */
import { AppError } from '../../../errors.ts'
import { checkParquetRow, flatColumns } from '../../../formats/flat/columns.ts'
import { csv, csvForDuckDb, type Dialect } from '../../../formats/flat/dialect.ts'
import { renderFlatDictionary } from '../../../formats/flat/dictionary.ts'
import { type CheckRow, MovementRows } from '../../../formats/flat/movement-rows.ts'
import { readAuxiliaries, readDictionary } from '../../../ledger/dictionary.sql.ts'
import { type Chunks, sameChunkBuffer } from '../../chunks.ts'
import { findEntrySpans, ofFile } from '../../read/movements.sql.ts'
import { readLedgerCursor } from '../../read/selected.sql.ts'
import type { Snapshot } from '../../read/snapshot.ts'
import { type FileOptions, type FileTally, renderSegments } from '../render-rows.ts'
import { toParquet } from './to-parquet.ts'

const header = new TextEncoder().encode(`${flatColumns.map(({ name }) => name).join(',')}\r\n`)

/** The header, then the rows of the selection by entry id, then movement id. */
export async function* renderCsvFile(
  snapshot: Snapshot,
  { selection, buffer }: Pick<FileOptions, 'selection' | 'buffer'>,
  tally: FileTally,
  dialect: Dialect = csv,
  check?: CheckRow,
): Chunks {
  const { first, second } = snapshot
  const resolved = ofFile(selection)
  const readRows = async () => {
    if ((await readLedgerCursor(first, selection)) === undefined) throw new AppError('ERR-FOLDER-NOT-FOUND')
    const rows = await readDictionary(first, selection)
    const dictionary = renderFlatDictionary(rows, await readAuxiliaries(first, selection), dialect)
    return new MovementRows(dictionary, dialect, check)
  }
  const [rows, spans] = await Promise.all([readRows(), findEntrySpans(second, resolved)])
  yield header
  yield* renderSegments(snapshot, resolved, spans, rows, { buffer, tally })
}

/** The bytes of a Parquet file (docs/spec/exports.md#csv-and-parquet-files): the rows of the CSV file, converted. */
export function renderParquetFile(
  snapshot: Snapshot,
  { selection, stopped }: FileOptions,
  tally: FileTally,
): Chunks {
  const buffer = sameChunkBuffer()
  const rows = renderCsvFile(snapshot, { selection, buffer }, tally, csvForDuckDb, checkParquetRow)
  return toParquet(rows, () => tally.movements, stopped)
}
