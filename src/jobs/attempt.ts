/** One attempt at a full export, from the main thread: starts it in a thread, reads its progress, stops it. */
import { MessageChannel } from 'node:worker_threads'
import { hashBeside, isQueueFull, type Threads } from '../threads/pool.ts'
import { failureOf } from './failure.ts'
import type { FolderOutcome, FolderTask } from './folder-thread.ts'
import type { Progress } from './jobs.sql.ts'

/** `noThread`: the queue of the threads is full, so the attempt did not start. */
export type AttemptOutcome = FolderOutcome | { noThread: true }

export interface RunningAttempt {
  /** Current progress. */
  progress(): Progress
  /** The export thread that runs it; undefined until one has begun. */
  threadId(): number | undefined
  /** Never rejects. */
  outcome: Promise<AttemptOutcome>
  /** Makes the thread remove what it wrote. The outcome is a failure unless the attempt had just finished. */
  stop: () => void
}

/** @param stopMs how long a stopped attempt may take to remove what it wrote */
export function startAttempt(
  threads: Threads,
  task: Omit<FolderTask, 'progress' | 'port' | 'hash'>,
  stopMs: number,
): RunningAttempt {
  const { port1: ourPort, port2: port } = new MessageChannel()
  const { port1: from, port2: hash } = new MessageChannel()
  // If it dies, the port closes, and the attempt fails.
  hashBeside(threads, { from }, () => {})
  const progress = new Float64Array(new SharedArrayBuffer(4 * Float64Array.BYTES_PER_ELEMENT))
  progress[1] = Number.NaN
  const gaveUp = Promise.withResolvers<AttemptOutcome>()
  const outcome: Promise<AttemptOutcome> = threads.exports
    .run({ ...task, progress, port, hash }, { name: 'exportFolder', transferList: [port, hash] as never })
    // The queue of the threads is full, or the thread died.
    .catch((error: unknown) => (isQueueFull(error) ? { noThread: true } : { failed: failureOf(error) }))
    .finally(() => {
      clearTimeout(stopTimer)
      ourPort.close()
      // Unless the thread has received it.
      hash.close()
    })
  let stopTimer: NodeJS.Timeout | undefined
  const stop = () => {
    ourPort.postMessage('stop')
    // An unreachable store can block even the removal.
    const tooLate = () => gaveUp.resolve({ failed: failureOf(new Error('the export thread did not stop')) })
    stopTimer ??= setTimeout(tooLate, stopMs)
  }
  return {
    progress: () => readProgress(progress),
    // Threads are numbered from 1.
    threadId: () => progress[3] || undefined,
    outcome: Promise.race([outcome, gaveUp.promise]),
    stop,
  }
}

function readProgress([rows = 0, rowsTotal = Number.NaN, bytes = 0]: Float64Array): Progress {
  return { rows, rowsTotal: Number.isNaN(rowsTotal) ? undefined : rowsTotal, bytes }
}
