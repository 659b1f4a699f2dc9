/** A streamed export as the main thread sees it: started, read chunk by chunk, cancelled. */
import type { Piscina } from 'piscina'
import { ChannelReader } from '../../threads/channel.ts'
import { asAppError } from '../../threads/pool.ts'
import { whileWaiting } from '../../threads/waiting-tasks.ts'
import type { CollectionTask } from './produce-collection.ts'
import type { SelectedTask } from './produce-selected.ts'
import type { ExportHead, ExportSummary } from './send.ts'

export type ExportReader = ChannelReader<ExportHead, ExportSummary>

interface Tasks {
  exportMovements: SelectedTask
  exportEntries: SelectedTask
  exportCollection: CollectionTask
}

/** Starts an export in a thread. Whatever goes wrong, also with the thread itself, comes out of the reader. */
export function startExport<Name extends keyof Tasks>(
  threads: Piscina,
  name: Name,
  task: Omit<Tasks[Name], 'port'>,
): ExportReader {
  const reader: ExportReader = new ChannelReader()
  const port = reader.threadPort
  // No abort signal: Piscina gives a thread that runs a task with one nothing else to do, so that as many clients that
  // do not read as there are threads would stop all exports.
  const waiting = whileWaiting({ ...task, port }, () => reader.cancelled)
  threads
    .run(waiting, { name, transferList: [port] as never })
    .catch((error: unknown) => reader.fail(asAppError(error)))
  return reader
}
