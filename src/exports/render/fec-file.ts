/**
 * The bytes of a FEC (docs/spec/fec.md): the lines of one exercice by two COPY streams. Memory does not grow with the
 * lines, except for the dictionary of what they refer to.
 */

import { strict as assert } from 'node:assert'
import { renderFecDictionary } from '../../formats/fec/lines/dictionary.ts'
import { FecLines } from '../../formats/fec/lines/fec-lines.ts'
import { fieldWriter } from '../../formats/fec/lines/field-writer.ts'
import { UnsupportedByFormat } from '../../formats/file-formats.ts'
import type { Chunks } from '../chunks.ts'
import { copyFec, type ExerciceKey, readFecDictionary, readFecExercice } from '../read/fec-file.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import type { Selection } from '../selection.ts'
import { type FileOptions, renderRows, type Tally } from './render-rows.ts'

export async function* renderFecFile(
  { first, second }: Snapshot,
  { selection, encoding, columns, buffer, noted }: FileOptions,
  tally: Tally,
): Chunks {
  const key = exerciceOf(selection)
  const [exercice, rows] = await Promise.all([readFecExercice(second, key), readFecDictionary(first, key)])
  if (!exercice) throw new UnsupportedByFormat(`The exercice ${key.exerciceId} is no longer in the folder`)
  const { order, filedColumns, drafts, outsideBooks } = exercice
  const furtherColumns = columns === 'extended' ? filedColumns : []
  const writer = fieldWriter(encoding ?? 'iso-8859-15')
  const lines = new FecLines(renderFecDictionary(rows, writer), writer, furtherColumns)
  yield lines.header()
  yield* renderRows({ first, second }, copyFec(key, order), lines, { buffer, tally })
  noted({
    drafts,
    outsideBooks,
    ...lines.notes,
    columnsLeftOut: filedColumns.length - furtherColumns.length,
  })
}

/** The exercice of a FEC. A full export in this format without an exercice was refused when it was asked for. */
export function exerciceOf({ schemaId, folderId, exerciceId }: Selection): ExerciceKey {
  assert(exerciceId !== undefined, 'a FEC holds one exercice')
  return { schemaId, folderId, exerciceId }
}
