/**
 * The bytes of a TRA file (tra.md): parameter records, then entries by two COPY streams. Memory does not grow with the
 * entries, but for what they refer to.
 */

import { strict as assert } from 'node:assert'
import type { Buffer } from 'node:buffer'
import type pg from 'pg'
import { CopyRows } from '../../db/copy-rows.ts'
import { partyKind } from '../../formats/party-kind.ts'
import { renderTraDictionary, type TraDictionary } from '../../formats/tra/dictionary.ts'
import { EntryLines, traEntryColumns, traMovementColumns } from '../../formats/tra/entry-lines.ts'
import { axesMax } from '../../formats/tra/folder-records.ts'
import { letteringCodes } from '../../formats/tra/lettering-codes.ts'
import { entrySegments } from '../read/entry-segments.ts'
import {
  copyEntries,
  copyMovements,
  findEntrySpans,
  ofFile,
  type ResolvedSelection,
} from '../read/movements.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import { findOddLetterings } from '../read/tra-file.sql.ts'
import { countChunks } from './count-chunks.ts'
import type { BufferOf, FileOptions } from './file-options.ts'
import { renderTraEntries, TraTally } from './render-tra-entries.ts'
import { parameterLines, readTraFolder, type TraFolder } from './tra-parameters.ts'

export async function* renderTraFile(
  snapshot: Snapshot,
  options: FileOptions,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const tally = new TraTally()
  yield* countChunks(partsOf(snapshot, options, tally), tally, options.counted)
}

async function* partsOf(
  snapshot: Snapshot,
  options: FileOptions,
  tally: TraTally,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const { first, second } = snapshot
  const { selection, now, chunkBytes, buffer } = options
  const resolved = ofFile(selection)
  // A tenth of a second of the other connection, while the parameters are read and written.
  const found = lookAtEntries(second, resolved)
  // Told where it is awaited, or not at all where the parameters fail first.
  found.catch(() => {})
  const of = await readTraFolder(first, resolved)
  const axesLeftOut = of.axes.slice(axesMax).map(({ code }) => code)
  if (axesLeftOut.length > 0) options.leftOut(axesLeftOut)
  yield* packLines(parameterLines({ client: first, of, now }), chunkBytes, buffer)
  const { spans, letterings } = await found
  const dictionary = dictionaryOf(of, letterings)
  const lines = new EntryLines(dictionary)
  for (const segment of entrySegments(spans)) {
    const inSegment = { ...resolved, exerciceIds: segment.exerciceIds, segments: [segment] }
    const entries = second.query(
      new CopyRows(copyEntries(inSegment, traEntryColumns), traEntryColumns.length),
    )
    const movements = first.query(
      new CopyRows(copyMovements(inSegment, traMovementColumns), traMovementColumns.length),
    )
    yield* renderTraEntries(entries, movements, lines, dictionary, chunkBytes, buffer, tally)
  }
}

async function lookAtEntries(client: pg.ClientBase, resolved: ResolvedSelection) {
  const spans = await findEntrySpans(client, resolved)
  const odd = await findOddLetterings(client, resolved.selection)
  const letterings = new Map(odd.map(({ accountId, codes }) => [Number(accountId), letteringCodes(codes)]))
  return { spans, letterings }
}

function dictionaryOf(of: TraFolder, letterings: TraDictionary['letterings']): TraDictionary {
  const collectiveOf = (number: string) => {
    const kind = partyKind(number)
    return kind === undefined ? null : of.collectives.get(kind)!.number
  }
  return renderTraDictionary({
    journals: of.journals.map(({ id, type }) => ({ id, code: of.journalCodes.get(id)!, type })),
    accounts: of.accounts.map(({ id, number }) => ({ id, number, collective: collectiveOf(number) })),
    payments: of.payments,
    sections: of.axes.flatMap(({ sections }, i) =>
      sections.map(({ id }) => ({ id, code: of.sectionCodes.get(id) ?? '', axis: i + 1 })),
    ),
    exercices: of.exercices,
    letterings,
  })
}

/** Chunks that are as full as whole lines make them. */
async function* packLines(
  lines: AsyncIterable<Buffer>,
  chunkBytes: number,
  buffer: BufferOf,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let out = buffer(chunkBytes)
  let at = 0
  for await (const line of lines) {
    assert(line.length <= out.length, 'a chunk holds a line')
    if (at + line.length > out.length) {
      yield out.subarray(0, at)
      out = buffer(chunkBytes)
      at = 0
    }
    out.set(line, at)
    at += line.length
  }
  if (at > 0) yield out.subarray(0, at)
}
