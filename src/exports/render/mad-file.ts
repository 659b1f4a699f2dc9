/**
 * The bytes of a MAD file (docs/spec/exports.md#json-file): collections by cursor, then the entries by two COPY
 * streams. Memory does not grow with the folder, except for the dictionary of what movements refer to.
 *
 * Entries are ordered by the id of their fiscal year, then by their own (see mad-file.sql.ts). All are included:
 * validated, awaiting validation, and without movements.
 */
import { strict as assert } from 'node:assert'
import { CopyRows } from '../../db/copy-rows.ts'
import { renderDictionary } from '../../formats/mad/dictionary.ts'
import { wholeEntryColumns } from '../../formats/mad/entry.ts'
import { movementColumns } from '../../formats/mad/movement.ts'
import { readDictionary } from '../../ledger/dictionary.sql.ts'
import { dayIn } from '../read/day.ts'
import { copyFolderEntries, copyFolderMovements } from '../read/mad-file.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import { isWholeFolder } from '../selection.ts'
import { collectionTexts, type FolderCollection } from './collections.ts'
import type { Tally } from './count-chunks.ts'
import type { FileOptions } from './file-options.ts'
import { framings } from './framing.ts'
import { packPieces } from './pack-pieces.ts'
import { renderEntries } from './render-entries.ts'

/** In their order. A collection with a route is no member unless it stands here. */
const membersBeforeEntries = [
  'accountingFolder',
  'payments',
  'banks',
  'journals',
  'accounts',
  'exercices',
  'analytics',
] as const satisfies FolderCollection[]

export async function* renderMadFile(
  snapshot: Snapshot,
  options: FileOptions,
  tally: Tally,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const { first, second } = snapshot
  const { selection, buffer } = options
  assert(isWholeFolder(selection), 'a MAD file holds a whole folder')
  yield* packPieces(textsBeforeEntries(snapshot, options), buffer)
  const dictionary = renderDictionary(await readDictionary(first, selection))
  const entries = second.query(new CopyRows(copyFolderEntries(selection), wholeEntryColumns.length))
  const movements = first.query(new CopyRows(copyFolderMovements(selection), movementColumns.length))
  yield* renderEntries(entries, movements, 'all', dictionary, framings.json, buffer, tally)
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
