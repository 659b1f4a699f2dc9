/** One attempt at a full export as the main thread sees it: started in a thread, watched, stopped. */
import { MessageChannel } from 'node:worker_threads'
import type { Piscina } from 'piscina'
import { isQueueFull } from '../threads/pool.ts'
import { failureOf } from './failure.ts'
import type { FolderOutcome, FolderTask } from './folder-thread.ts'
import type { Progress } from './jobs.sql.ts'

/** No place: the threads have so much to do that it was not even begun. */
export type AttemptOutcome = FolderOutcome | { noThread: true }

export interface Attempt {
  /** How far it is now. */
  progress(): Progress
  /** Never rejects. */
  outcome: Promise<AttemptOutcome>
  /** The thread takes back what it wrote, and the outcome is a failure unless it had just finished. */
  stop: () => void
}

/** @param stopMs how long it may take back what it wrote when it is stopped */
export function startAttempt(
  threads: Piscina,
  task: Omit<FolderTask, 'progress' | 'port'>,
  stopMs: number,
): Attempt {
  const { port1: ourPort, port2: port } = new MessageChannel()
  const progress = new Float64Array(new SharedArrayBuffer(3 * Float64Array.BYTES_PER_ELEMENT))
  progress[1] = Number.NaN
  const gaveUp = Promise.withResolvers<AttemptOutcome>()
  const outcome: Promise<AttemptOutcome> = threads
    .run({ ...task, progress, port }, { name: 'exportFolder', transferList: [port] as never })
    // There was no place in a thread, or it ended.
    .catch((error: unknown) => (isQueueFull(error) ? { noThread: true } : { failed: failureOf(error) }))
    .finally(() => {
      clearTimeout(stopTimer)
      ourPort.close()
    })
  let stopTimer: NodeJS.Timeout | undefined
  const stop = () => {
    ourPort.postMessage('stop')
    // A store that is out of reach can hold up even what only takes back.
    const tooLate = () => gaveUp.resolve({ failed: failureOf(new Error('the export thread did not stop')) })
    stopTimer ??= setTimeout(tooLate, stopMs)
  }
  return { progress: () => readProgress(progress), outcome: Promise.race([outcome, gaveUp.promise]), stop }
}

function readProgress([rows = 0, rowsTotal = Number.NaN, bytes = 0]: Float64Array): Progress {
  return { rows, rowsTotal: Number.isNaN(rowsTotal) ? undefined : rowsTotal, bytes }
}
