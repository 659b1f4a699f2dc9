/**
 * The bytes of a TRA file (docs/spec/tra.md): parameter records, then entries by two COPY streams. Memory does not grow
 * with the entries, except for the dictionary of what they refer to.
 */

import type pg from 'pg'
import { letteringCodes } from '../../../formats/tra/codes.ts'
import { renderTraDictionary } from '../../../formats/tra/dictionary.ts'
import { EntryLines } from '../../../formats/tra/entry-lines.ts'
import { axesMax } from '../../../formats/tra/records.ts'
import type { Chunks } from '../../chunks.ts'
import { findEntrySpans, ofFile, type ResolvedSelection } from '../../read/movements.sql.ts'
import type { Snapshot } from '../../read/snapshot.ts'
import { findOddLetterings } from '../../read/tra-file.sql.ts'
import { packPieces } from '../framing.ts'
import type { FileOptions, Tally } from '../render-rows.ts'
import { renderSegments } from '../render-rows.ts'
import { parameterLines, readTraFolder } from './tra-parameters.ts'

export async function* renderTraFile(snapshot: Snapshot, options: FileOptions, tally: Tally): Chunks {
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
  const lines = new EntryLines(renderTraDictionary(books, letterings))
  yield* renderSegments(snapshot, resolved, spans, lines, { buffer, tally })
}

async function surveyEntries(client: pg.ClientBase, resolved: ResolvedSelection) {
  const spans = await findEntrySpans(client, resolved)
  const odd = await findOddLetterings(client, resolved.selection)
  const letterings = new Map(odd.map(({ accountId, codes }) => [Number(accountId), letteringCodes(codes)]))
  return { spans, letterings }
}
