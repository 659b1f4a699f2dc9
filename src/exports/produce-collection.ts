import { AppError } from '../errors.ts'
import type { Collection, CollectionOwner } from './collections.ts'
import { collectionTexts } from './collections.ts'
import { readSelected } from './movements.sql.ts'
import { packTexts } from './pack-texts.ts'
import type { ItemsForm } from './render-movements.ts'
import type { Produced, Room } from './send.ts'
import type { Snapshot } from './snapshot.ts'

export interface CollectionOptions {
  collection: Collection
  owner: CollectionOwner
  form: ItemsForm
  chunkBytes: number
  room: Room
}

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
