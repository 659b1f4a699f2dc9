import { queueOptionsSymbol, type TaskQueue } from 'piscina'

type Task = Parameters<TaskQueue['push']>[0]

interface Waiting {
  left: () => boolean
  refuse: () => void
}

/**
 * Marks a task for {@link WaitingTasks}. The mark is not sent to the thread.
 * @param waiting.left whether the task's caller has disconnected, so that it need not run
 * @param waiting.refuse called if the task has waited too long; then it never runs
 */
export function whileWaiting<T extends object>(task: T, waiting: Waiting): T {
  return Object.assign(task, { [queueOptionsSymbol]: waiting })
}

/**
 * A first-in-first-out queue of tasks that drops those whose caller has disconnected, and refuses those that have waited
 * too long. Otherwise clients that time out and retry would fill the queue with abandoned requests. (An abort signal
 * also removes a task from Piscina's queue, but a thread that runs a task with a signal accepts no other task
 * meanwhile.)
 */
export class WaitingTasks implements TaskQueue {
  readonly #waitMs: number
  #tasks: Task[] = []
  readonly #timers = new Map<Task, NodeJS.Timeout>()

  /** @param waitMs how long a task may wait */
  constructor(waitMs: number) {
    this.#waitMs = waitMs
  }

  get size(): number {
    for (const task of this.#tasks) if (waitingOf(task)?.left()) this.remove(task)
    return this.#tasks.length
  }

  shift(): Task | null {
    return this.size > 0 ? this.#tasks.shift()! : null
  }

  push(task: Task): void {
    this.#tasks.push(task)
    this.#limitWait(task)
  }

  /** Piscina puts a task that waits back with this; the first to wait comes without `push`. */
  unshift(task: Task): void {
    this.#tasks.unshift(task)
    this.#limitWait(task)
  }

  #limitWait(task: Task): void {
    const waiting = waitingOf(task)
    if (!waiting || this.#timers.has(task)) return
    const tooLate = () => {
      const isWaiting = this.#tasks.includes(task)
      this.remove(task)
      if (isWaiting) waiting.refuse()
    }
    this.#timers.set(task, setTimeout(tooLate, this.#waitMs).unref())
  }

  remove(task: Task): void {
    clearTimeout(this.#timers.get(task))
    this.#timers.delete(task)
    this.#tasks = this.#tasks.filter((other) => other !== task)
  }
}

/** Null for a full export, which waits as long as it takes. */
function waitingOf(task: Task): Waiting | null {
  return task[queueOptionsSymbol] as Waiting | null
}
