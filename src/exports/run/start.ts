/** Starts a streamed export from the main thread. The reader reads its chunks and cancels it. */
import { MessageChannel, MessagePort } from 'node:worker_threads'
import { monotonicSeconds } from '../../telemetry/telemetry.ts'
import { ChannelReader, reuseBuffers } from '../../threads/channel.ts'
import { asAppError, hashBeside, noThreadFree, type Threads, whileWaiting } from '../../threads/pool.ts'
import type { EndedLedger, LedgersTask, NextLedger, SentLedgers } from './ledgers/task.ts'
import type { ExportHead, ExportSummary, ExportTask, SentTask } from './task.ts'

export type ExportReader = ChannelReader<ExportHead, ExportSummary>

/**
 * Starts an export in a thread. The reader reports every error, including those of the threads themselves.
 * @param digest whether its summary has the SHA-256 of the body
 */
export function startExport(
  threads: Threads,
  asked: Pick<SentTask, 'task' | 'schemaId' | 'seen'>,
  digest: boolean,
): ExportReader {
  const reader: ExportReader = new ChannelReader()
  const failed = failing(reader)
  const { port, hash } = digest
    ? hashed(threads, asked.task, reader, failed)
    : { port: reader.threadPort, hash: undefined }
  const ports = hash instanceof MessagePort ? [port, hash] : [port]
  run(threads, reader, 'streamExport', { ...asked, port, hash, ...begunNow() } satisfies SentTask, ports)
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
  const { port1: answering, port2: asking } = new MessageChannel()
  answering.on('message', (ended: EndedLedger | undefined) => {
    next(ended).then((ledger) => answering.postMessage(ledger), failing(reader))
  })
  reader.whenClosed(() => answering.close())
  const port = reader.threadPort
  run(threads, reader, 'streamLedgers', { task, port, asking, ...begunNow() } satisfies SentLedgers, [
    port,
    asking,
  ])
  return reader
}

const begunNow = () => ({ buffers: reuseBuffers(), sentAt: monotonicSeconds() })

const failing = (reader: ExportReader) => (error: unknown) => reader.fail(asAppError(error))

/**
 * Runs the task in a thread as soon as one is free. It uses no abort signal: while a thread runs a task with a signal,
 * Piscina gives it no other task. One client per thread that does not read would then block all exports.
 */
function run(
  { exports }: Threads,
  reader: ExportReader,
  name: string,
  sent: SentTask | SentLedgers,
  ports: MessagePort[],
): void {
  const failed = failing(reader)
  const waiting = whileWaiting(sent, {
    left: () => reader.cancelled,
    refuse: () => failed(noThreadFree()),
  })
  exports.run(waiting, { name, transferList: [...ports, ...sent.buffers] as never }).catch(failed)
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
  // Closes the port if the thread has not received it: the task may never start.
  reader.whenClosed(() => port2.close())
  return { port, hash: port2 }
}

/**
 * Whether the body usually has more than two megabytes. Below that, hashing takes less time than the messages of a hash
 * thread, which cost 0.2 ms of processor time for a single line. Answers with changes are usually short, too.
 */
function isLong(task: ExportTask): boolean {
  return 'since' in task && task.since === undefined && task.entries === undefined
}
