/** The thread pool of exports. */
import { Piscina } from 'piscina'
import { limits } from '../config.ts'
import { AppError } from '../errors.ts'
import type { StoreSettings } from '../store/store.ts'
import type { StoreTiming } from '../timing.ts'
import { WaitingTasks } from './waiting-tasks.ts'

/** Megabytes of JavaScript heap per thread. An export needs about 20; a leak should end the thread, not the machine. */
const threadHeapMb = 256

/** Settings that never change while the process lives: each thread gets them once, at its start. */
export interface ThreadSettings {
  /** The database that exports read. */
  databaseUrl: string
  /** Each thread opens its own store. */
  store: StoreSettings
  storeTiming: StoreTiming
  /** The platform's time zone, an IANA name. */
  timeZone: string
}

export function createThreads(count: number, settings: ThreadSettings): Piscina {
  return new Piscina({
    filename: new URL('../export-thread.ts', import.meta.url).href,
    minThreads: count,
    maxThreads: count,
    concurrentTasksPerWorker: limits.exportsPerThread,
    maxQueue: limits.exportQueueMax,
    taskQueue: new WaitingTasks(),
    // Otherwise the first waiting task goes to the end of the queue each time no thread has a slot for it.
    stricterFIFO: true,
    // The default blocks a thread's event loop between tasks, and with it exports that are waiting for their clients.
    atomics: 'disabled',
    workerData: settings,
    resourceLimits: { maxOldGenerationSizeMb: threadHeapMb },
  })
}

/** Whether a task was refused because the queue is full. Piscina reports that only by the message. */
export function isQueueFull(error: unknown): boolean {
  return error instanceof Error && error.message === 'Task queue is at limit'
}

export function asAppError(error: unknown): Error {
  if (isQueueFull(error)) {
    return new AppError('ERR-UNAVAILABLE', { headers: { 'Retry-After': '10' }, cause: error })
  }
  return error instanceof Error ? error : new Error('the export thread failed', { cause: error })
}
