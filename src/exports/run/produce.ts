import type { ChunkBuffer } from '../chunk-buffer.ts'
import type { Snapshot } from '../read/snapshot.ts'
import { produceBalance } from './produce-balance.ts'
import { produceBlocks } from './produce-blocks.ts'
import { produceChanges } from './produce-changes.ts'
import { produceCollection } from './produce-collection.ts'
import { produceEntry } from './produce-entry.ts'
import { produceSelected } from './produce-selected.ts'
import type { ExportTask, Produced } from './task.ts'

/** Resolves what the task selects, and produces it chunk by chunk. */
export async function produce(snapshot: Snapshot, task: ExportTask, buffer: ChunkBuffer): Promise<Produced> {
  switch (task.what) {
    case 'movements':
    case 'entries':
      return task.since === undefined
        ? produceSelected(snapshot, task, buffer)
        : produceChanges(snapshot, { ...task, since: task.since }, buffer)
    case 'blocks':
      return produceBlocks(snapshot, task, buffer)
    case 'balance':
      return produceBalance(snapshot, task, buffer)
    case 'entry':
      return produceEntry(snapshot, task, buffer)
    default:
      return produceCollection(snapshot, task, buffer)
  }
}
