/**
 * The bytes of a CSV file (docs/spec/exports.md#csv-and-parquet-files), by two COPY streams. Memory does not grow with
 * the entries, except for the dictionary of what they refer to.
 */
import type pg from 'pg'
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
import type { Selection } from '../../selection.ts'
import { type FileOptions, renderSegments, type Tally } from '../render-rows.ts'
import { toParquet } from './to-parquet.ts'

const header = new TextEncoder().encode(`${flatColumns.map(({ name }) => name).join(',')}\r\n`)

export function renderCsvFile(snapshot: Snapshot, options: FileOptions, tally: Tally): Chunks {
  return csvChunks(snapshot, options, tally, csv)
}

/** The header, then the rows of the selection by entry id, then movement id. */
async function* csvChunks(
  snapshot: Snapshot,
  { selection, buffer }: Pick<FileOptions, 'selection' | 'buffer'>,
  tally: Tally,
  dialect: Dialect,
  check?: CheckRow,
): Chunks {
  const resolved = ofFile(selection)
  const [dictionary, spans] = await Promise.all([
    readFlatDictionary(snapshot.first, selection, dialect),
    findEntrySpans(snapshot.second, resolved),
  ])
  yield header
  yield* renderSegments(snapshot, resolved, spans, new MovementRows(dictionary, dialect, check), {
    buffer,
    tally,
  })
}

async function readFlatDictionary(client: pg.ClientBase, selection: Selection, dialect: Dialect) {
  if ((await readLedgerCursor(client, selection)) === undefined) throw new AppError('ERR-FOLDER-NOT-FOUND')
  const rows = await readDictionary(client, selection)
  return renderFlatDictionary(rows, await readAuxiliaries(client, selection), dialect)
}

/** The bytes of a Parquet file (docs/spec/exports.md#csv-and-parquet-files): the rows of the CSV file, converted. */
export function renderParquetFile(
  snapshot: Snapshot,
  { selection, stopped }: FileOptions,
  tally: Tally,
): Chunks {
  const buffer = sameChunkBuffer()
  const csv = csvChunks(snapshot, { selection, buffer }, tally, csvForDuckDb, checkParquetRow)
  return toParquet(csv, () => tally.movements, stopped)
}
