import { AppError } from '../../errors.ts'
import type { ChunkBuffer } from '../chunk-buffer.ts'
import { readLedgerCursor } from '../read/selected.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import { collectionTexts } from '../render/collections.ts'
import { packPieces } from '../render/pack-pieces.ts'
import type { CollectionTask, Produced } from './task.ts'

/** Produces one collection of a folder, or the folders that a token opens. */
export async function produceCollection(
  { first }: Snapshot,
  task: CollectionTask,
  buffer: ChunkBuffer,
): Promise<Produced> {
  const cursor = task.what === 'society' ? undefined : await readLedgerCursor(first, task.owner)
  if (task.what !== 'society' && cursor === undefined) throw new AppError('ERR-FOLDER-NOT-FOUND')
  let rows = 0
  const texts = collectionTexts(first, task, task.form, (items) => {
    rows += items
  })
  return { head: { cursor }, chunks: packPieces(texts, buffer), rows: () => rows }
}
