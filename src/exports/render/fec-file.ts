/**
 * The bytes of a FEC (docs/spec/fec.md): the lines of one exercice by two COPY streams. Memory does not grow with the
 * lines, except for the dictionary of what they refer to.
 */

import { renderFecDictionary } from '../../formats/fec/lines/dictionary.ts'
import { FecLines } from '../../formats/fec/lines/fec-lines.ts'
import { fieldWriter } from '../../formats/fec/lines/field-writer.ts'
import { UnsupportedByFormat } from '../../formats/file-formats.ts'
import type { Chunks } from '../chunks.ts'
import { copyFec, readFecExercice, readFiledAccounts, readFiledJournals } from '../read/fec-file.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import { type FileOptions, type FileTally, renderRows } from './render-rows.ts'

export async function* renderFecFile(
  { first, second }: Snapshot,
  { selection, encoding, columns, buffer }: FileOptions,
  tally: FileTally,
): Chunks {
  const [exercice, journals, accounts] = await Promise.all([
    readFecExercice(second, selection),
    readFiledJournals(first, selection),
    readFiledAccounts(first, selection),
  ])
  if (!exercice)
    throw new UnsupportedByFormat(`The exercice ${selection.exerciceId} is no longer in the folder`)
  const { order, filedColumns, drafts, outsideBooks } = exercice
  const furtherColumns = columns === 'extended' ? filedColumns : []
  const writer = fieldWriter(encoding ?? 'iso-8859-15')
  const lines = new FecLines(renderFecDictionary(journals, accounts, writer), writer, furtherColumns)
  yield lines.header()
  yield* renderRows({ first, second }, copyFec(selection, order), lines, { buffer, tally })
  const columnsLeftOut = filedColumns.length - furtherColumns.length
  tally.notes = { drafts, outsideBooks, ...lines.notes, columnsLeftOut }
}
