/** One attempt at a full export, as the main thread handles it: starts it in a thread, reads its progress, stops it. */
import { addAbortListener } from 'node:events'
import { MessageChannel } from 'node:worker_threads'
import { monotonicSeconds } from '../telemetry/telemetry.ts'
import { hashBeside, isQueueFull, type Threads } from '../threads/pool.ts'
import { failureOf } from './failure.ts'
import type { FolderOutcome, FolderTask } from './folder-thread.ts'
import type { ClaimedExport, Progress } from './jobs.sql.ts'

/** `noThread`: the queue of the threads is full, so the attempt did not start. */
export type AttemptOutcome = Exclude<FolderOutcome, { replicaFailed: true }> | { noThread: true }

export type RunningAttempt = ReturnType<typeof startAttempt>

/**
 * Starts an attempt. If a replica fails, the attempt starts over on the main database; this does not count as another
 * attempt.
 * @param stopMs how long a stopped attempt may take to remove what it wrote
 */
export function startAttempt(threads: Threads, claimed: ClaimedExport, stopMs: number) {
  const stopped = new AbortController()
  const progress = new Float64Array(new SharedArrayBuffer(4 * Float64Array.BYTES_PER_ELEMENT))
  const run = (isAgain: boolean) => {
    progress.set([0, Number.NaN, 0, 0])
    return runInThread(threads, { claimed, isAgain, progress }, stopped.signal)
  }
  const ended = (async (): Promise<AttemptOutcome> => {
    const outcome = await run(false)
    if (!('replicaFailed' in outcome)) return outcome
    const again = stopped.signal.aborted ? undefined : await run(true)
    return again && !('replicaFailed' in again) ? again : { failed: failureOf(stopped.signal.reason) }
  })().finally(() => clearTimeout(stopTimer))
  const gaveUp = Promise.withResolvers<AttemptOutcome>()
  let stopTimer: NodeJS.Timeout | undefined
  const stop = () => {
    stopped.abort(new Error('the export was stopped'))
    // An unreachable store can block even the removal.
    const tooLate = () => gaveUp.resolve({ failed: failureOf(new Error('the export thread did not stop')) })
    stopTimer ??= setTimeout(tooLate, stopMs)
  }
  return {
    /** Current progress. */
    progress: () => readProgress(progress),
    /** The export thread that runs the attempt; undefined until one has begun it. Threads are numbered from 1. */
    threadId: () => progress[3] || undefined,
    /** Never rejects. */
    outcome: Promise.race([ended, gaveUp.promise]),
    /** Makes the thread remove what it wrote. The outcome is a failure unless the attempt had just finished. */
    stop,
  }
}

/** Never rejects. */
async function runInThread(
  threads: Threads,
  task: Omit<FolderTask, 'port' | 'hash' | 'sentAt'>,
  stopped: AbortSignal,
): Promise<FolderOutcome | { noThread: true }> {
  const { port1: ourPort, port2: port } = new MessageChannel()
  const { port1: from, port2: hash } = new MessageChannel()
  // If the hash thread dies, the port closes and the attempt fails.
  hashBeside(threads, { from }, () => {})
  using _heard = addAbortListener(stopped, () => ourPort.postMessage('stop'))
  try {
    const transferList = [port, hash] as never
    return await threads.exports.run(
      { ...task, port, hash, sentAt: monotonicSeconds() },
      { name: 'exportFolder', transferList },
    )
  } catch (error) {
    // Either the queue of the threads is full, or the thread died.
    return isQueueFull(error) ? { noThread: true } : { failed: failureOf(error) }
  } finally {
    ourPort.close()
    // No effect if the thread has received the port.
    hash.close()
  }
}

function readProgress([rows = 0, rowsTotal = Number.NaN, bytes = 0]: Float64Array): Progress {
  return { rows, rowsTotal: Number.isNaN(rowsTotal) ? undefined : rowsTotal, bytes }
}
