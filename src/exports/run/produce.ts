import type { ChunkBuffer } from '../chunk-buffer.ts'
import type { Snapshot } from '../read/snapshot.ts'
import { produceCollection } from './produce-collection.ts'
import { produceSelected } from './produce-selected.ts'
import type { ExportTask, Produced } from './task.ts'

/** Resolves what the task selects, and produces it chunk by chunk. */
export function produce(snapshot: Snapshot, task: ExportTask, buffer: ChunkBuffer): Promise<Produced> {
  return 'selection' in task
    ? produceSelected(snapshot, task, buffer)
    : produceCollection(snapshot, task, buffer)
}
