/**
 * The bytes of a MAD file (docs/spec/exports.md#json-file): collections by cursor, then the entries by two COPY
 * streams. Memory does not grow with the folder, except for the dictionary of what movements refer to.
 *
 * Entries are ordered by the id of their fiscal year, then by their own. Both primary keys have this order, so the
 * first row arrives at once and nothing is sorted. Ordered by entry id alone, PostgreSQL 18 sorts the whole folder on
 * disk (1.5 s for 300,000 movements instead of 0.2), even when each year is read in order and a merge would suffice.
 * All entries are included: validated, awaiting validation, and without movements.
 */

import { strict as assert } from 'node:assert'
import { renderDictionary } from '../../formats/mad/dictionary.ts'
import { entriesFormat } from '../../formats/mad/entries.ts'
import { readDictionary } from '../../ledger/dictionary.sql.ts'
import type { Chunks } from '../chunks.ts'
import { copySelected } from '../read/movements.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import { isWholeFolder } from '../selection.ts'
import { collectionTexts, dayIn, type FolderCollection } from './collections.ts'
import { framings, packPieces } from './framing.ts'
import { type FileOptions, type FileTally, renderRows } from './render-rows.ts'

/** In the order of the file. A collection that is not in this list is not in the file. */
const membersBeforeEntries = [
  'accountingFolder',
  'payments',
  'banks',
  'journals',
  'accounts',
  'exercices',
  'analytics',
] as const satisfies FolderCollection[]

export async function* renderMadFile(snapshot: Snapshot, options: FileOptions, tally: FileTally): Chunks {
  const { selection, buffer } = options
  assert(isWholeFolder(selection), 'a MAD file holds a whole folder')
  yield* packPieces(textsBeforeEntries(snapshot, options), buffer)
  const dictionary = renderDictionary(await readDictionary(snapshot.first, selection))
  const format = entriesFormat(dictionary)
  const statements = { ...copySelected({ selection }, format, 'exercice_id'), order: 'same' } as const
  yield* renderRows(snapshot, statements, format, { buffer, tally, framing: framings.json })
  assert(tally.strays === 0, 'a movement belongs to no entry of its folder')
  yield* packPieces(['}}'], buffer)
}

async function* textsBeforeEntries({ first }: Snapshot, options: FileOptions): AsyncGenerator<string> {
  const { selection, exportId, version, now, withEmployees } = options
  const { schemaId, folderId, timeZone } = selection
  const metadata = {
    version,
    createdAt: now,
    producer: 'Grandlivre',
    additionalFreeProperties: { exportId },
  }
  yield `{"metadata":${JSON.stringify(metadata)},"data":{`
  const owner = { schemaId, folderId, today: dayIn(timeZone, now), timeZone, withEmployees }
  for (const what of membersBeforeEntries) {
    yield `"${what}":`
    yield* collectionTexts(first, { what, owner }, 'json', () => {})
    yield ','
  }
  yield '"entries":'
}
