/**
 * Counts of export threads, in memory that they share with the main thread: counting an event costs an addition and no
 * message. The main thread reads the memory when metrics are collected.
 *
 * Each kind of event has one counter for all threads. Each pool of a thread has a slot with its counts, written once a
 * second; the main thread frees the slots of threads that have died.
 */
import { Buffer } from 'node:buffer'
import { type LabelsOf, type Metric, metrics, type SharedCounterName, sharedCounters } from './metrics.ts'
import type { Observation, PoolCounts, ThreadedTelemetry } from './telemetry.ts'

/** Number of slots for pools: at least two for each of 64 threads. */
const slots = 256
/** Bytes of a pool's name that are kept; the rest is cut off. */
const nameBytes = 32
/** How often a thread writes the counts of its pools: they are never older than this. */
const writeEveryMs = 1_000

/** The shared counters: one for each value of a label. The slots count `db.client.connection.timeouts`. */
const shared = sharedCounters.flatMap((name) =>
  Object.entries((metrics[name] as Metric).labels).flatMap(([label, values]) =>
    (values ?? []).map((value) => ({ name, label, value })),
  ),
)

/** Layout of the shared memory, in words: first the counters of all threads, then the slots. */
const slotsFrom = shared.length
const slotWords = {
  threadId: 0,
  total: 1,
  idle: 2,
  waiting: 3,
  max: 4,
  timeouts: 5,
  tasks: 6,
  name: 7,
} as const
const slotLength = slotWords.name + nameBytes / Int32Array.BYTES_PER_ELEMENT

export function shareThreadMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer((slotsFrom + slots * slotLength) * Int32Array.BYTES_PER_ELEMENT)
}

/** The side of an export thread: writes the shared memory. */
export class ThreadTelemetry implements ThreadedTelemetry {
  readonly #words: Int32Array
  readonly #threadId: number
  readonly #slotsByName = new Map<string, number>()
  readonly #timers: NodeJS.Timeout[] = []

  /** @param threadId id of this thread, not 0 */
  constructor(memory: SharedArrayBuffer, threadId: number) {
    this.#words = new Int32Array(memory)
    this.#threadId = threadId
  }

  watchPool(name: string, pool: PoolCounts): void {
    const slot = this.#claimSlot(name)
    if (slot === undefined) return
    const write = () => {
      this.#words[slot + slotWords.total] = pool.totalCount
      this.#words[slot + slotWords.idle] = pool.idleCount
      this.#words[slot + slotWords.waiting] = pool.waitingCount
      this.#words[slot + slotWords.max] = pool.options.max
    }
    write()
    this.#timers.push(setInterval(write, writeEveryMs).unref())
  }

  /** @param by how much to add; 1 by default */
  count<Name extends SharedCounterName>(name: Name, labels: LabelsOf<Name>, by = 1): void {
    const values = Object.values(labels)
    const at =
      name === 'db.client.connection.timeouts'
        ? (this.#slotsByName.get(String(values[0])) ?? Number.NaN) + slotWords.timeouts
        : shared.findIndex((counter) => counter.name === name && values.includes(counter.value))
    if (at >= 0) Atomics.add(this.#words, at, by)
  }

  record(): void {}

  close(): void {
    for (const timer of this.#timers) clearInterval(timer)
  }

  /** Counts a task of this thread while it runs. */
  async during<Result>(task: Promise<Result>): Promise<Result> {
    const [slot] = this.#slotsByName.values()
    if (slot === undefined) return task
    this.#words[slot + slotWords.tasks]! += 1
    try {
      return await task
    } finally {
      this.#words[slot + slotWords.tasks]! -= 1
    }
  }

  /** Claims a slot for a pool. Undefined if no slot is free: the pool is then not counted. */
  #claimSlot(name: string): number | undefined {
    for (let slot = slotsFrom; slot < this.#words.length; slot += slotLength) {
      if (Atomics.compareExchange(this.#words, slot + slotWords.threadId, 0, this.#threadId) !== 0) continue
      nameOf(this.#words, slot).fill(0).write(name)
      this.#slotsByName.set(name, slot)
      return slot
    }
    return undefined
  }
}

/** The side of the main thread: reads the shared memory. */
export function readThreadMemory(memory: SharedArrayBuffer) {
  const words = new Int32Array(memory)
  /** For each pool: how many callers of threads that have died got no connection. */
  const formerTimeouts = new Map<string, number>()
  const counts = (name: SharedCounterName): Observation[] =>
    shared.flatMap((counter, at) =>
      counter.name === name
        ? [{ value: Atomics.load(words, at), labels: { [counter.label]: counter.value } }]
        : [],
    )
  /** How many of these threads are running a task. */
  const busy = (threadIds: readonly number[]): number => {
    const withTasks = new Set<number>()
    for (let slot = slotsFrom; slot < words.length; slot += slotLength)
      if (words[slot + slotWords.tasks]! > 0) withTasks.add(words[slot + slotWords.threadId]!)
    return threadIds.filter((threadId) => withTasks.has(threadId)).length
  }
  /** The pools of living threads. Frees the slots of dead threads. */
  const pools = (living: ReadonlySet<number>) => {
    const found: (PoolCounts & { name: string; timeouts: number })[] = []
    for (let slot = slotsFrom; slot < words.length; slot += slotLength) {
      const word = (name: keyof typeof slotWords) => words[slot + slotWords[name]]!
      if (word('threadId') === 0) continue
      const name = nameOf(words, slot).toString().replaceAll('\0', '')
      const timeouts = word('timeouts')
      if (living.has(word('threadId'))) {
        const options = { max: word('max') }
        const connections = {
          totalCount: word('total'),
          idleCount: word('idle'),
          waitingCount: word('waiting'),
        }
        found.push({ name, ...connections, options, timeouts })
      } else {
        formerTimeouts.set(name, (formerTimeouts.get(name) ?? 0) + timeouts)
        words.fill(0, slot, slot + slotLength)
      }
    }
    return found
  }
  return { formerTimeouts, counts, busy, pools }
}

function nameOf({ buffer }: Int32Array, slot: number): Buffer {
  return Buffer.from(buffer, (slot + slotWords.name) * Int32Array.BYTES_PER_ELEMENT, nameBytes)
}
