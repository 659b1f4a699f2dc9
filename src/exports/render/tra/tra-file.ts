/**
 * The bytes of a TRA file (docs/spec/tra.md): parameter records, then entries by two COPY streams. Memory does not grow
 * with the entries, except for the dictionary of what they refer to.
 */
import type pg from 'pg'
import { renderTraDictionary, type TraDictionary } from '../../../formats/tra/dictionary.ts'
import { EntryLines, traEntryColumns, traMovementColumns } from '../../../formats/tra/entry-lines.ts'
import { axesMax } from '../../../formats/tra/folder-records.ts'
import { letteringCodes } from '../../../formats/tra/lettering-codes.ts'
import { findEntrySpans, ofFile, type ResolvedSelection } from '../../read/movements.sql.ts'
import type { Snapshot } from '../../read/snapshot.ts'
import { findOddLetterings } from '../../read/tra-file.sql.ts'
import type { Tally } from '../count-chunks.ts'
import type { FileOptions } from '../file-options.ts'
import { packPieces } from '../pack-pieces.ts'
import { type LineFormat, renderSegments } from '../render-lines.ts'
import { traEntrySetter } from './tra-entry-setter.ts'
import { parameterLines, readTraFolder, type TraFolder } from './tra-parameters.ts'

export async function* renderTraFile(
  snapshot: Snapshot,
  options: FileOptions,
  tally: Tally,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const { first, second } = snapshot
  const { selection, now, withEmployees, buffer } = options
  const resolved = ofFile(selection)
  // Takes the second connection a tenth of a second, while the first reads the parameters.
  const found = surveyEntries(second, resolved)
  // A rejection is handled at the `await` below, and ignored if the parameters fail first.
  found.catch(() => {})
  const books = await readTraFolder(first, resolved)
  const axesLeftOut = books.axes.slice(axesMax).map(({ code }) => code)
  if (axesLeftOut.length > 0) options.leftOut(axesLeftOut)
  yield* packPieces(parameterLines({ client: first, books, now, withEmployees }), buffer)
  const { spans, letterings } = await found
  const dictionary = dictionaryOf(books, letterings)
  const lines = new EntryLines(dictionary)
  const format: LineFormat = {
    entryColumns: traEntryColumns,
    movementColumns: traMovementColumns,
    lines,
    setEntry: traEntrySetter(lines, dictionary),
  }
  yield* renderSegments(snapshot, resolved, spans, format, buffer, tally)
}

async function surveyEntries(client: pg.ClientBase, resolved: ResolvedSelection) {
  const spans = await findEntrySpans(client, resolved)
  const odd = await findOddLetterings(client, resolved.selection)
  const letterings = new Map(odd.map(({ accountId, codes }) => [Number(accountId), letteringCodes(codes)]))
  return { spans, letterings }
}

function dictionaryOf(books: TraFolder, letterings: TraDictionary['letterings']): TraDictionary {
  return renderTraDictionary({
    journals: books.journals.map(({ id, type }) => ({ id, code: books.journalCodes.get(id)!, type })),
    accounts: books.accounts.map(({ id, number }) => ({
      id,
      number,
      party: books.parties.of.get(id) ?? null,
    })),
    payments: books.payments,
    sections: books.axes.flatMap(({ sections }, i) =>
      sections.map(({ id }) => ({ id, code: books.sectionCodes.get(id) ?? '', axis: i + 1 })),
    ),
    exercices: books.exercices,
    letterings,
  })
}
