/**
 * The bytes of a MAD file (interface, section 2.3): collections by cursor, then the entries by two COPY streams. Memory
 * does not grow with the folder, but for the dictionary of what movements refer to.
 *
 * Entries stand by the id of their fiscal year, then by their own (see mad-file.sql.ts): validated ones, those awaiting
 * validation, and those without movements.
 */
import { strict as assert } from 'node:assert'
import { CopyRows } from '../../db/copy-rows.ts'
import { renderDictionary } from '../../formats/mad/dictionary.ts'
import { wholeEntryColumns } from '../../formats/mad/entry.ts'
import { movementColumns } from '../../formats/mad/movement.ts'
import { readDictionary } from '../../ledger/dictionary.sql.ts'
import { copyFolderEntries, copyFolderMovements } from '../read/mad-file.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import { collectionTexts, folderCollections } from './collections.ts'
import { countChunks, type FileTotals } from './count-chunks.ts'
import { packTexts } from './pack-texts.ts'
import { EntriesTally, renderEntries } from './render-entries.ts'

export { countMovements } from '../read/mad-file.sql.ts'

export interface MadFileOptions {
  schemaId: string
  folderId: string
  exportId: string
  /** Of the format. */
  version: string
  /** Epoch milliseconds of the snapshot. */
  now: number
  /** `YYYY-MM-DD` in the time zone of the platform. */
  today: string
  timeZone: string
  /** How full a chunk may get; a single item that needs more gets a chunk of its own. */
  chunkBytes: number
  /** Gives at least so many bytes to render into. */
  room: (bytes: number) => Uint8Array<ArrayBuffer>
  /** Told what the file holds up to the end of each chunk, before it is yielded. The last call has it all. */
  counted: (totals: FileTotals) => void
}

/** @throws {AppError} ERR-FOLDER-NOT-FOUND; with chunks of some hundred bytes at least, before the first of them */
export async function* renderMadFile(
  snapshot: Snapshot,
  options: MadFileOptions,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const tally = new EntriesTally()
  yield* countChunks(partsOf(snapshot, options, tally), tally, options.counted)
}

async function* partsOf(
  snapshot: Snapshot,
  options: MadFileOptions,
  tally: EntriesTally,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const { first, second } = snapshot
  const { schemaId, folderId, chunkBytes, room } = options
  yield* packTexts(textsBeforeEntries(snapshot, options), chunkBytes, room)
  const dictionary = renderDictionary(await readDictionary(first, { schemaId, folderId }))
  const folder = { schemaId, folderId }
  const entries = second.query(new CopyRows(copyFolderEntries(folder), wholeEntryColumns.length))
  const movements = first.query(new CopyRows(copyFolderMovements(folder), movementColumns.length))
  yield* renderEntries(entries, movements, 'all', dictionary, 'json', chunkBytes, room, tally)
  assert(tally.strays === 0, 'a movement stands outside of the entries of its folder')
  yield* packTexts(textsOf('}}'), chunkBytes, room)
}

async function* textsBeforeEntries({ first }: Snapshot, options: MadFileOptions): AsyncGenerator<string> {
  const { schemaId, folderId, exportId, version, now, today, timeZone } = options
  const metadata = {
    version,
    createdAt: now,
    producer: 'Grandlivre',
    additionalFreeProperties: { exportId },
  }
  yield `{"metadata":${JSON.stringify(metadata)},"data":{`
  const owner = { schemaId, folderId, firmId: '0', today, timeZone }
  for (const collection of folderCollections) {
    yield `"${collection}":`
    yield* collectionTexts(first, collection, owner, 'json', () => {})
    yield ','
  }
  yield '"entries":'
}

async function* textsOf(...texts: string[]): AsyncGenerator<string> {
  yield* texts
}
