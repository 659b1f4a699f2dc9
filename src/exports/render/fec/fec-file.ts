/**
 * The bytes of a FEC (docs/spec/fec.md): the lines of one exercice by two COPY streams. Memory does not grow with the
 * lines, except for the dictionary of what they refer to.
 */
import { strict as assert } from 'node:assert'
import { CopyRows } from '../../../db/copy-rows.ts'
import { renderFecDictionary } from '../../../formats/fec/lines/dictionary.ts'
import {
  FecLines,
  fecEntryColumns,
  fecEntryOffsets,
  fecMovementColumns,
  fecMovementOffsets,
} from '../../../formats/fec/lines/fec-lines.ts'
import { fieldWriter } from '../../../formats/fec/lines/field-writer.ts'
import { UnsupportedByFormat } from '../../../formats/unsupported.ts'
import {
  copyFecEntries,
  copyFecMovements,
  type ExerciceKey,
  readFecDictionary,
  readFecExercice,
} from '../../read/fec-file.sql.ts'
import type { Snapshot } from '../../read/snapshot.ts'
import type { Selection } from '../../selection.ts'
import { countChunks, Tally } from '../count-chunks.ts'
import type { FileOptions } from '../file-options.ts'
import { renderLines } from '../render-lines.ts'

export async function* renderFecFile(
  snapshot: Snapshot,
  options: FileOptions,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const tally = new Tally()
  yield* countChunks(partsOf(snapshot, options, tally), tally, options.counted)
}

async function* partsOf(
  { first, second }: Snapshot,
  { selection, encoding, columns, buffer, noted }: FileOptions,
  tally: Tally,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const key = exerciceOf(selection)
  const [exercice, rows] = await Promise.all([readFecExercice(second, key), readFecDictionary(first, key)])
  if (!exercice) throw new UnsupportedByFormat(`The exercice ${key.exerciceId} is no longer in the folder`)
  const { order, filedColumns, drafts, outsideBooks } = exercice
  const furtherColumns = columns === 'extended' ? filedColumns : []
  const writer = fieldWriter(encoding ?? 'iso-8859-15')
  const lines = new FecLines(renderFecDictionary(rows, writer), writer, furtherColumns)
  yield lines.header()
  const entries = second.query(new CopyRows(copyFecEntries(key, order), fecEntryColumns.length))
  const movements = first.query(new CopyRows(copyFecMovements(key, order), fecMovementColumns.length))
  const merge = {
    entries,
    movements,
    order: order === 'ids' ? 'ascending' : 'same',
    ofEntry: fecEntryOffsets,
    ofMovement: fecMovementOffsets,
    lines,
    setEntry: (base: number, row: number) => {
      lines.setEntry(entries.bytes, entries.fields, base)
      return row
    },
  } as const
  yield* renderLines(merge, buffer, tally)
  noted({
    drafts,
    outsideBooks,
    ...lines.notes,
    columnsLeftOut: filedColumns.length - furtherColumns.length,
  })
}

/** A trigger without an exercice is refused. */
export function exerciceOf({ schemaId, folderId, exerciceId }: Selection): ExerciceKey {
  assert(exerciceId !== undefined, 'a FEC holds one exercice')
  return { schemaId, folderId, exerciceId }
}
