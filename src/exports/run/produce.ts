import type { Snapshot } from '../read/snapshot.ts'
import { produceCollection } from './produce-collection.ts'
import { produceSelected } from './produce-selected.ts'
import type { Buffers, ExportTask, Produced } from './task.ts'

/** Finds out what is asked for, and gives it chunk by chunk. */
export function produce(snapshot: Snapshot, task: ExportTask, buffers: Buffers): Promise<Produced> {
  return 'selection' in task
    ? produceSelected(snapshot, task, buffers)
    : produceCollection(snapshot, task, buffers)
}
