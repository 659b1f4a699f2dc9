/**
 * The bytes of a TRA file (docs/spec/tra.md): parameter records, then entries by two COPY streams. Memory does not grow
 * with the entries, except for the dictionary of what they refer to.
 */
import type { Buffer } from 'node:buffer'
import type pg from 'pg'
import { CopyRows } from '../../../db/copy-rows.ts'
import { renderTraDictionary, type TraDictionary } from '../../../formats/tra/dictionary.ts'
import {
  EntryLines,
  traEntryColumns,
  traEntryOffsets,
  traMovementColumns,
  traMovementOffsets,
} from '../../../formats/tra/entry-lines.ts'
import { axesMax } from '../../../formats/tra/folder-records.ts'
import { letteringCodes } from '../../../formats/tra/lettering-codes.ts'
import type { ChunkBuffer } from '../../chunk-buffer.ts'
import { entrySegments } from '../../read/entry-segments.ts'
import {
  copyEntries,
  copyMovements,
  findEntrySpans,
  ofFile,
  type ResolvedSelection,
} from '../../read/movements.sql.ts'
import type { Snapshot } from '../../read/snapshot.ts'
import { findOddLetterings } from '../../read/tra-file.sql.ts'
import { countChunks, Tally } from '../count-chunks.ts'
import type { FileOptions } from '../file-options.ts'
import { renderLines } from '../render-lines.ts'
import { traEntrySetter } from './tra-entry-setter.ts'
import { parameterLines, readTraFolder, type TraFolder } from './tra-parameters.ts'

export async function* renderTraFile(
  snapshot: Snapshot,
  options: FileOptions,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const tally = new Tally()
  yield* countChunks(partsOf(snapshot, options, tally), tally, options.counted)
}

async function* partsOf(
  snapshot: Snapshot,
  options: FileOptions,
  tally: Tally,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const { first, second } = snapshot
  const { selection, now, buffer } = options
  const resolved = ofFile(selection)
  // Takes the second connection a tenth of a second, while the first reads the parameters.
  const found = surveyEntries(second, resolved)
  // A rejection is handled at the `await` below, and ignored if the parameters fail first.
  found.catch(() => {})
  const books = await readTraFolder(first, resolved)
  const axesLeftOut = books.axes.slice(axesMax).map(({ code }) => code)
  if (axesLeftOut.length > 0) options.leftOut(axesLeftOut)
  yield* packLines(parameterLines({ client: first, books, now }), buffer)
  const { spans, letterings } = await found
  const dictionary = dictionaryOf(books, letterings)
  const lines = new EntryLines(dictionary)
  for (const segment of entrySegments(spans)) {
    const inSegment = { ...resolved, exerciceIds: segment.exerciceIds, segments: [segment] }
    const entries = second.query(
      new CopyRows(copyEntries(inSegment, traEntryColumns), traEntryColumns.length),
    )
    const movements = first.query(
      new CopyRows(copyMovements(inSegment, traMovementColumns), traMovementColumns.length),
    )
    const merge = {
      entries,
      movements,
      order: 'ascending',
      ofEntry: traEntryOffsets,
      ofMovement: traMovementOffsets,
      lines,
      setEntry: traEntrySetter(entries, movements, lines, dictionary),
    } as const
    yield* renderLines(merge, buffer, tally)
  }
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

/** Packs as many whole lines as fit into each chunk. */
async function* packLines(
  lines: AsyncIterable<Buffer>,
  buffer: ChunkBuffer,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let out: Uint8Array<ArrayBuffer> = new Uint8Array()
  let at = 0
  for await (const line of lines) {
    if (at + line.length > out.length) {
      if (at > 0) yield out.subarray(0, at)
      out = buffer(line.length)
      at = 0
    }
    out.set(line, at)
    at += line.length
  }
  if (at > 0) yield out.subarray(0, at)
}
