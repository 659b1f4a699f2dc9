import { queueOptionsSymbol, type TaskQueue } from 'piscina'

type Task = Parameters<TaskQueue['push']>[0]

interface Waiting {
  left: () => boolean
}

/**
 * Marks a task for {@link WaitingTasks}. The mark stays in this thread.
 * @param left whether its caller has left, and it need not be run any more
 */
export function whileWaiting<T extends object>(task: T, left: () => boolean): T {
  return Object.assign(task, { [queueOptionsSymbol]: { left } satisfies Waiting })
}

/**
 * Tasks that wait for a thread, in the order in which they came, without those whose caller has left: clients that give
 * up and come back would otherwise fill the queue with requests of which nobody waits for the answer. (Piscina takes a
 * task out by an abort signal, too, but a thread that runs a task with one takes no other beside it.)
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

  /** For a task that was taken and found no place. */
  unshift(task: Task): void {
    this.#tasks.unshift(task)
  }

  remove(task: Task): void {
    this.#tasks = this.#tasks.filter((other) => other !== task)
  }
}
