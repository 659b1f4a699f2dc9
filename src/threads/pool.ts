/** The export threads, and the hash threads that work beside them. */
import { Piscina, queueOptionsSymbol, type TaskQueue } from 'piscina'
import { limits } from '../config.ts'
import { AppError } from '../errors.ts'
import type { StoreSettings } from '../store/store.ts'
import type { Telemetry, ThreadKind } from '../telemetry/telemetry.ts'
import type { ReplicaTiming, StoreTiming } from '../timing.ts'
import type { HashTask } from './channel.ts'

/** A hash thread takes 1.1 GB/s; an export thread renders 300 to 400 MB/s. */
const exportThreadsPerHashThread = 3

/** Megabytes of JavaScript heap per thread. An export needs about 20; a leak should end the thread, not the machine. */
const threadHeapMb = 256

/** Settings that never change while the process lives: each thread gets them once, at its start. */
export interface ThreadSettings {
  /** Address of the main database: an `Address` (db/address.ts). */
  database: { url: string; isPooled: boolean }
  /** The replica of EXPORT_DATABASE_URL, if it is set. */
  replica?: { address: { url: string; isPooled: boolean }; timing: ReplicaTiming } | undefined
  /** Exports that a thread runs at once, each with two connections. */
  exportsPerThread: number
  /** How long an export waits for a thread; by default `limits.exportWaitMs`. */
  waitMs?: number
  /** Settings from which each thread opens its own store. */
  store: StoreSettings
  storeTiming: StoreTiming
  /** The platform's time zone, an IANA name. */
  timeZone: string
  /** Memory in which threads count what happens (`telemetry/thread-telemetry.ts`). If undefined, they count nothing. */
  telemetryMemory: SharedArrayBuffer | undefined
}

/** The threads of a process. A thread that dies is replaced. */
export interface Threads {
  exports: Piscina
  /** Hash threads. Each export gets the least busy one. */
  hashes: Piscina
  destroy: () => Promise<void>
}

/** @param count number of export threads */
export function createThreads(
  count: number,
  telemetry: Telemetry,
  settings: Omit<ThreadSettings, 'telemetryMemory'>,
): Threads {
  const common = {
    // The default blocks a thread's event loop between tasks, and so it would block exports that are waiting for their
    // clients.
    atomics: 'disabled',
    resourceLimits: { maxOldGenerationSizeMb: threadHeapMb },
  } as const
  const exports = new Piscina({
    ...common,
    filename: new URL('../export-thread.ts', import.meta.url).href,
    minThreads: count,
    maxThreads: count,
    concurrentTasksPerWorker: settings.exportsPerThread,
    maxQueue: limits.exportQueueMax,
    taskQueue: new WaitingTasks(settings.waitMs ?? limits.exportWaitMs),
    // Otherwise the first waiting task moves to the end of the queue each time no thread has a slot for it.
    stricterFIFO: true,
    workerData: { ...settings, telemetryMemory: telemetry.threadMemory } satisfies ThreadSettings,
  })
  const hashThreads = Math.ceil(count / exportThreadsPerHashThread)
  const hashes = new HashThreads({
    ...common,
    filename: new URL('../hash-thread.ts', import.meta.url).href,
    minThreads: hashThreads,
    maxThreads: hashThreads,
    // A hash thread takes any number of exports: no export waits for another to end.
    concurrentTasksPerWorker: Number.POSITIVE_INFINITY,
  })
  const ends = [watch('export', exports, telemetry), watch('hash', hashes, telemetry)]
  const destroy = async () => {
    for (const end of ends) end()
    await exports.destroy()
    await hashes.destroy()
  }
  return { exports, hashes, destroy }
}

/**
 * Hash threads, with a count of their tasks. Export threads count their tasks themselves: a task that is dropped while
 * it waits never ends in Piscina's view.
 */
class HashThreads extends Piscina {
  tasks = 0

  override async run(...task: Parameters<Piscina['run']>): ReturnType<Piscina['run']> {
    this.tasks += 1
    try {
      return await super.run(...task)
    } finally {
      this.tasks -= 1
    }
  }
}

/**
 * Reports the number of threads, of tasks and of deaths. @returns function that ends this, to be called before the
 * threads are stopped on purpose
 */
function watch(kind: ThreadKind, pool: Piscina, telemetry: Telemetry): () => void {
  telemetry.watchThreads(kind, () => ({
    threadIds: pool.threads.map(({ threadId }) => threadId),
    running: pool instanceof HashThreads ? pool.tasks : undefined,
    waiting: pool.queueSize,
  }))
  const died = () => telemetry.count('grandlivre.thread.deaths', {})
  pool.on('workerDestroy', died)
  return () => pool.off('workerDestroy', died)
}

/**
 * Starts to hash the chunks that arrive at a port.
 * @param task its ports are transferred
 * @param failed called if the hash thread dies or never gets the ports
 */
export function hashBeside(
  { hashes }: Pick<Threads, 'hashes'>,
  task: HashTask,
  failed: (error: unknown) => void,
): void {
  const ports = task.to ? [task.from, task.to] : [task.from]
  hashes.run(task, { name: 'hashChunks', transferList: ports as never }).catch((error: unknown) => {
    // This closes ports that the thread has not received: if one was closed while the thread was being replaced, the
    // other is still here.
    for (const port of ports) port.close()
    failed(error)
  })
}

/** Whether a task was refused because the queue is full. Piscina says so only in the message of the error. */
export function isQueueFull(error: unknown): boolean {
  return error instanceof Error && error.message === 'Task queue is at limit'
}

/** The error if no thread was free in time, or too many exports already wait. Its cause tells operators what to do. */
export function noThreadFree(): AppError {
  const cause = new Error(
    'All export threads are busy, and exports that wait for them have waited too long or are too many: raise EXPORT_THREADS ' +
      'or EXPORTS_PER_THREAD, or start another process.',
  )
  return new AppError('ERR-UNAVAILABLE', { headers: { 'Retry-After': '10' }, cause })
}

export function asAppError(error: unknown): Error {
  if (isQueueFull(error)) return noThreadFree()
  return error instanceof Error ? error : new Error('the export thread failed', { cause: error })
}

type Task = Parameters<TaskQueue['push']>[0]

interface WaitingCaller {
  /** Whether the caller has disconnected, so that its task need not run. */
  left: () => boolean
  /** Called if the task has waited too long; the task then never runs. */
  refuse: () => void
}

/** Marks a task for {@link WaitingTasks}. The mark is not sent to the thread. */
export function whileWaiting<T extends object>(task: T, caller: WaitingCaller): T {
  return Object.assign(task, { [queueOptionsSymbol]: caller })
}

/**
 * A first-in-first-out queue of tasks. It drops tasks whose caller has disconnected, and refuses tasks that have waited
 * too long; otherwise clients that time out and retry would fill the queue with abandoned requests. (An abort signal
 * also removes a task from Piscina's queue, but a thread that runs a task with a signal accepts no other task
 * meanwhile.)
 */
class WaitingTasks implements TaskQueue {
  readonly #waitMs: number
  #tasks: Task[] = []
  readonly #timers = new Map<Task, NodeJS.Timeout>()

  /** @param waitMs how long a task may wait */
  constructor(waitMs: number) {
    this.#waitMs = waitMs
  }

  get size(): number {
    for (const task of this.#tasks) if (callerOf(task)?.left()) this.remove(task)
    return this.#tasks.length
  }

  shift(): Task | null {
    return this.size > 0 ? this.#tasks.shift()! : null
  }

  push(task: Task): void {
    this.#tasks.push(task)
    this.#limitWait(task)
  }

  /**
   * Piscina puts a task back with this if no thread takes it. The first task to wait comes this way, too, not by
   * `push`.
   */
  unshift(task: Task): void {
    this.#tasks.unshift(task)
    this.#limitWait(task)
  }

  #limitWait(task: Task): void {
    const caller = callerOf(task)
    if (!caller || this.#timers.has(task)) return
    const tooLate = () => {
      const isWaiting = this.#tasks.includes(task)
      this.remove(task)
      if (isWaiting) caller.refuse()
    }
    this.#timers.set(task, setTimeout(tooLate, this.#waitMs).unref())
  }

  remove(task: Task): void {
    clearTimeout(this.#timers.get(task))
    this.#timers.delete(task)
    this.#tasks = this.#tasks.filter((other) => other !== task)
  }
}

/** The caller that waits for a task; null for a full export, which waits as long as it takes. */
function callerOf(task: Task): WaitingCaller | null {
  return task[queueOptionsSymbol] as WaitingCaller | null
}
