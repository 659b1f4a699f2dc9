import { queueOptionsSymbol, type TaskQueue } from 'piscina'

type Task = Parameters<TaskQueue['push']>[0]

interface Waiting {
  left: () => boolean
}

/**
 * Marks a task for {@link WaitingTasks}. The mark is not sent to the thread.
 * @param left whether the task's caller has disconnected, so that it need not run
 */
export function whileWaiting<T extends object>(task: T, left: () => boolean): T {
  return Object.assign(task, { [queueOptionsSymbol]: { left } satisfies Waiting })
}

/**
 * A first-in-first-out queue of tasks that drops those whose caller has disconnected. Otherwise clients that time out
 * and retry would fill the queue with abandoned requests. (An abort signal also removes a task from Piscina's queue,
 * but a thread that runs a task with a signal accepts no other task meanwhile.)
 */
export class WaitingTasks implements TaskQueue {
  #tasks: Task[] = []

  get size(): number {
    this.#tasks = this.#tasks.filter((task) => !(task[queueOptionsSymbol] as Waiting | null)?.left())
    return this.#tasks.length
  }

  shift(): Task | null {
    return this.size > 0 ? this.#tasks.shift()! : null
  }

  push(task: Task): void {
    this.#tasks.push(task)
  }

  /** Returns a task for which no thread had a slot. */
  unshift(task: Task): void {
    this.#tasks.unshift(task)
  }

  remove(task: Task): void {
    this.#tasks = this.#tasks.filter((other) => other !== task)
  }
}
