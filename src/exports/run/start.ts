/** A streamed export as the main thread sees it: started, read chunk by chunk, cancelled. */
import type { Piscina } from 'piscina'
import { ChannelReader, takeKeptBuffers } from '../../threads/channel.ts'
import { asAppError } from '../../threads/pool.ts'
import { whileWaiting } from '../../threads/waiting-tasks.ts'
import type { ExportHead, ExportSummary, ExportTask, SentTask } from './task.ts'

export type ExportReader = ChannelReader<ExportHead, ExportSummary>

/** Starts an export in a thread. Whatever goes wrong, also with the thread itself, comes out of the reader. */
export function startExport(threads: Piscina, task: ExportTask): ExportReader {
  const reader: ExportReader = new ChannelReader()
  const port = reader.threadPort
  // No abort signal: Piscina gives a thread that runs a task with one nothing else to do, so that as many clients that
  // do not read as there are threads would stop all exports.
  const buffers = takeKeptBuffers()
  const waiting = whileWaiting({ task, port, buffers } satisfies SentTask, () => reader.cancelled)
  threads
    .run(waiting, { name: 'streamExport', transferList: [port, ...buffers] as never })
    .catch((error: unknown) => reader.fail(asAppError(error)))
  return reader
}
