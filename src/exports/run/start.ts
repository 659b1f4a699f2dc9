/** A streamed export, from the main thread: starts it; the reader reads its chunks and cancels it. */
import type { Piscina } from 'piscina'
import { ChannelReader, reuseBuffers } from '../../threads/channel.ts'
import { asAppError } from '../../threads/pool.ts'
import { whileWaiting } from '../../threads/waiting-tasks.ts'
import type { ExportHead, ExportSummary, ExportTask, SentTask } from './task.ts'

export type ExportReader = ChannelReader<ExportHead, ExportSummary>

/** Starts an export in a thread. The reader reports every error, including those of the thread itself. */
export function startExport(threads: Piscina, task: ExportTask): ExportReader {
  const reader: ExportReader = new ChannelReader()
  const port = reader.threadPort
  // No abort signal: Piscina gives a thread that runs a task with a signal no other task, so one client per thread that
  // does not read would block all exports.
  const buffers = reuseBuffers()
  const waiting = whileWaiting({ task, port, buffers } satisfies SentTask, () => reader.cancelled)
  threads
    .run(waiting, { name: 'streamExport', transferList: [port, ...buffers] as never })
    .catch((error: unknown) => reader.fail(asAppError(error)))
  return reader
}
