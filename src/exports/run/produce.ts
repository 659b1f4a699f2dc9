import type { Snapshot } from '../read/snapshot.ts'
import { produceCollection } from './produce-collection.ts'
import { produceSelected } from './produce-selected.ts'
import type { Buffers, ExportTask, Produced } from './task.ts'

/** Resolves what the task selects, and produces it chunk by chunk. */
export function produce(snapshot: Snapshot, task: ExportTask, buffers: Buffers): Promise<Produced> {
  return 'selection' in task
    ? produceSelected(snapshot, task, buffers)
    : produceCollection(snapshot, task, buffers)
}
