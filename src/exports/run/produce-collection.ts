import { AppError } from '../../errors.ts'
import type { StreamedForm } from '../../formats/file-formats.ts'
import { readSelected } from '../read/movements.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import type { Collection, CollectionOwner } from '../render/collections.ts'
import { collectionTexts } from '../render/collections.ts'
import { packTexts } from '../render/pack-texts.ts'
import type { Produced, Room, SentTask } from './send.ts'

export interface CollectionOptions {
  collection: Collection
  owner: CollectionOwner
  form: StreamedForm
  chunkBytes: number
  room: Room
}

/** What a thread is given; it adds its own buffers. */
export type CollectionTask = SentTask & Omit<CollectionOptions, 'chunkBytes' | 'room'>

/** One collection of a folder, or the folders of a firm. */
export async function produceCollection(
  { first }: Snapshot,
  { collection, owner, form, chunkBytes, room }: CollectionOptions,
): Promise<Produced> {
  let ledgerVersion = ''
  if (collection !== 'society') {
    const selected = await readSelected(first, { ...owner, exerciceId: undefined })
    if (!selected) throw new AppError('ERR-FOLDER-NOT-FOUND')
    ledgerVersion = selected.ledgerVersion
  }
  let rows = 0
  const texts = collectionTexts(first, collection, owner, form, (items) => {
    rows += items
  })
  return { head: { ledgerVersion }, chunks: packTexts(texts, chunkBytes, room), rows: () => rows }
}
