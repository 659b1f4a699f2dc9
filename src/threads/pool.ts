/** The threads exports run in. */
import { Piscina } from 'piscina'
import { limits } from '../config.ts'
import { AppError } from '../errors.ts'
import type { StoreSettings } from '../store/store.ts'
import type { StoreTiming } from '../timing.ts'
import { WaitingTasks } from './waiting-tasks.ts'

/** Megabytes of JavaScript heap of one thread. An export needs some 20; a leak shall end a thread, not the machine. */
const threadHeapMb = 256

/** What does not change while the process lives: a thread is given it once, at its start. */
export interface ThreadSettings {
  /** Where exports read. */
  databaseUrl: string
  /** Each thread opens a store of its own. */
  store: StoreSettings
  storeTiming: StoreTiming
  /** IANA name, of the platform. */
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
    // Otherwise the first of those that wait goes to the end each time no thread has a slot for it.
    stricterFIFO: true,
    // The default blocks a thread's event loop between tasks, and with it the exports that wait for their clients.
    atomics: 'disabled',
    workerData: settings,
    resourceLimits: { maxOldGenerationSizeMb: threadHeapMb },
  })
}

/** Whether a task was refused since too many wait already. Piscina says so only in words. */
export function saysFull(error: unknown): boolean {
  return error instanceof Error && error.message === 'Task queue is at limit'
}

export function asAppError(error: unknown): Error {
  if (saysFull(error)) {
    return new AppError('ERR-UNAVAILABLE', { headers: { 'Retry-After': '10' }, cause: error })
  }
  return error instanceof Error ? error : new Error('the export thread failed', { cause: error })
}
