/**
 * The bytes of a CSV file (docs/spec/exports.md#csv-and-parquet-files), by two COPY streams. Memory does not grow with
 * the entries, except for the dictionary of what they refer to.
 */
import type pg from 'pg'
import { AppError } from '../../../errors.ts'
import { flatColumns } from '../../../formats/flat/columns.ts'
import { csv, type Dialect } from '../../../formats/flat/dialect.ts'
import { type FlatDictionary, renderFlatDictionary } from '../../../formats/flat/dictionary.ts'
import {
  type CheckRow,
  flatEntryColumns,
  flatMovementColumns,
  MovementRows,
} from '../../../formats/flat/movement-rows.ts'
import { readAuxiliaries, readDictionary } from '../../../ledger/dictionary.sql.ts'
import { findEntrySpans, ofFile } from '../../read/movements.sql.ts'
import { readLedgerCursor } from '../../read/selected.sql.ts'
import type { Snapshot } from '../../read/snapshot.ts'
import type { Selection } from '../../selection.ts'
import type { Tally } from '../count-chunks.ts'
import type { FileOptions } from '../file-options.ts'
import { type LineFormat, renderSegments } from '../render-lines.ts'

const header = new TextEncoder().encode(`${flatColumns.map(({ name }) => name).join(',')}\r\n`)

export function renderCsvFile(
  snapshot: Snapshot,
  options: FileOptions,
  tally: Tally,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  return csvChunks(snapshot, options, tally, csv)
}

/** The header, then the rows of the selection by entry id, then movement id. */
export async function* csvChunks(
  snapshot: Snapshot,
  { selection, buffer }: Pick<FileOptions, 'selection' | 'buffer'>,
  tally: Tally,
  dialect: Dialect,
  check?: CheckRow,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const resolved = ofFile(selection)
  const [dictionary, spans] = await Promise.all([
    readFlatDictionary(snapshot.first, selection, dialect),
    findEntrySpans(snapshot.second, resolved),
  ])
  const format = flatFormat(dictionary, dialect, check)
  yield header
  yield* renderSegments(snapshot, resolved, spans, format, buffer, tally)
}

/** Rows of movements, in the dialect of the dictionary. */
export function flatFormat(dictionary: FlatDictionary, dialect: Dialect, check?: CheckRow): LineFormat {
  const rows = new MovementRows(dictionary, dialect, check)
  return {
    entryColumns: flatEntryColumns,
    movementColumns: flatMovementColumns,
    lines: rows,
    setEntry: (entries, base) => void rows.setEntry(entries, base),
  }
}

async function readFlatDictionary(client: pg.ClientBase, selection: Selection, dialect: Dialect) {
  if ((await readLedgerCursor(client, selection)) === undefined) throw new AppError('ERR-FOLDER-NOT-FOUND')
  const rows = await readDictionary(client, selection)
  return renderFlatDictionary(rows, await readAuxiliaries(client, selection), dialect)
}
