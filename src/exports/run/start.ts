/** A streamed export, from the main thread: starts it; the reader reads its chunks and cancels it. */
import { MessageChannel, MessagePort } from 'node:worker_threads'
import type { FolderKey } from '../../formats/rows.ts'
import { monotonicSeconds } from '../../telemetry/telemetry.ts'
import { ChannelReader, reuseBuffers } from '../../threads/channel.ts'
import { asAppError, hashBeside, noThreadFree, type Threads, whileWaiting } from '../../threads/pool.ts'
import type { EndedLedger, LedgersTask, NextLedger, SentLedgers } from './ledgers/task.ts'
import type { ExportHead, ExportSummary, ExportTask, SentTask } from './task.ts'

export type ExportReader = ChannelReader<ExportHead, ExportSummary>

/**
 * Starts an export in a thread. The reader reports every error, including those of the threads themselves.
 * @param digest whether its summary has the SHA-256 of the body
 * @param seen cursor of the ledger that the request saw: the export shows that state or a later one
 */
export function startExport(
  threads: Threads,
  task: ExportTask,
  digest: boolean,
  seen?: string,
): ExportReader {
  const reader: ExportReader = new ChannelReader()
  const failed = (error: unknown) => reader.fail(asAppError(error))
  const sent: Pick<SentTask, 'port' | 'hash'> = digest
    ? hashed(threads, task, reader, failed)
    : { port: reader.threadPort, hash: undefined }
  const buffers = reuseBuffers()
  // No abort signal: Piscina gives a thread that runs a task with a signal no other task, so one client per thread that
  // does not read would block all exports.
  const sentAt = monotonicSeconds()
  const waiting = whileWaiting(
    { task, seen: seenBy(task, seen), ...sent, buffers, sentAt } satisfies SentTask,
    { left: () => reader.cancelled, refuse: () => failed(noThreadFree()) },
  )
  const { port, hash } = sent
  const transferList = [port, ...(hash instanceof MessagePort ? [hash] : []), ...buffers]
  threads.exports.run(waiting, { name: 'streamExport', transferList: transferList as never }).catch(failed)
  return reader
}

/**
 * Starts an answer of many ledgers in a thread.
 * @param next answers the thread each time it asks for a ledger. If it rejects, the answer fails
 */
export function startLedgers(
  threads: Threads,
  task: LedgersTask,
  next: (ended: EndedLedger | undefined) => Promise<NextLedger>,
): ExportReader {
  const reader: ExportReader = new ChannelReader()
  const failed = (error: unknown) => reader.fail(asAppError(error))
  const { port1: answering, port2: asking } = new MessageChannel()
  answering.on('message', (ended: EndedLedger | undefined) => {
    next(ended).then((ledger) => answering.postMessage(ledger), failed)
  })
  reader.whenClosed(() => answering.close())
  const port = reader.threadPort
  const buffers = reuseBuffers()
  const waiting = whileWaiting(
    { task, port, asking, buffers, sentAt: monotonicSeconds() } satisfies SentLedgers,
    { left: () => reader.cancelled, refuse: () => failed(noThreadFree()) },
  )
  const transferList = [port, asking, ...buffers]
  threads.exports.run(waiting, { name: 'streamLedgers', transferList: transferList as never }).catch(failed)
  return reader
}

function seenBy(task: ExportTask, cursor: string | undefined): SentTask['seen'] {
  const folder = folderOf(task)
  if (!folder || cursor === undefined) return undefined
  return { schemaId: folder.schemaId, folderId: folder.folderId, cursor }
}

/** Undefined if the task concerns no single folder. */
function folderOf(task: ExportTask): FolderKey | undefined {
  if ('selection' in task) return task.selection
  if ('named' in task) return task.named
  return task.what === 'society' ? undefined : task.owner
}

function hashed(
  threads: Threads,
  task: ExportTask,
  reader: ExportReader,
  failed: (error: unknown) => void,
): Pick<SentTask, 'port' | 'hash'> {
  const port = reader.threadPort
  if (!isLong(task)) return { port, hash: 'here' }
  const { port1: from, port2 } = new MessageChannel()
  if (task.encoding === 'identity') {
    hashBeside(threads, { from, to: port }, failed)
    return { port: port2, hash: undefined }
  }
  hashBeside(threads, { from }, failed)
  // Unless the thread has it: the task may never start.
  reader.whenClosed(() => port2.close())
  return { port, hash: port2 }
}

/**
 * Whether the body usually has more than two megabytes. Below that, hashing takes less than a hash thread's messages,
 * which cost 0.2 ms of processor for a single line. What has changed is usually short, too.
 */
function isLong(task: ExportTask): boolean {
  return 'since' in task && task.since === undefined && task.entries === undefined
}
