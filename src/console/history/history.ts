/** What the charts of the process show: a sample every ten seconds for an hour, while the console runs. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { RunningStreams } from '../../http/stream/running-streams.ts'
import type { RunningAttempts } from '../../jobs/running-attempts.ts'
import { Ring, sampleEveryMs } from './ring.ts'

export const seriesNames = [
  /** Per second. */
  'rows',
  'bytes',
  /** Bytes of the process, with its threads. */
  'memory',
  /** Seconds. */
  'eventLoop',
  'firstByte',
  'queuedExport',
  /** Of those whose receiver does not fail. */
  'delivery',
] as const
export type SeriesName = (typeof seriesNames)[number]

/** How often the delay of the event loop is sampled. */
const resolutionMs = 20

export interface HistoryParts {
  streams: RunningStreams
  attempts: RunningAttempts
  standing: LatestStanding
}

/** How long the oldest full export and the oldest delivery have waited, as metrics say; undefined if not known now. */
export interface LatestStanding {
  queue: { latest(): Promise<{ ageSeconds: number } | undefined> }
  deliveries: { latest(): Promise<{ oldestSeconds: number } | undefined> }
}

export class History {
  readonly #parts: HistoryParts
  readonly #ring = new Ring(seriesNames)
  readonly #eventLoop = monitorEventLoopDelay({ resolution: resolutionMs })
  readonly #timer: NodeJS.Timeout
  #last: { at: number; rows: number; bytes: number }
  #sampling: Promise<void> = Promise.resolve()

  constructor(parts: HistoryParts) {
    this.#parts = parts
    this.#last = this.#counted()
    this.#eventLoop.enable()
    this.#timer = setInterval(() => {
      this.#sampling = this.sample()
    }, sampleEveryMs)
    this.#timer.unref()
  }

  values(name: SeriesName): Float64Array {
    return this.#ring.values(name)
  }

  async sample(): Promise<void> {
    const { standing } = this.#parts
    // A database that cannot be reached leaves a gap in its curves.
    const [queue, deliveries] = await Promise.all([standing.queue.latest(), standing.deliveries.latest()])
    const [before, now] = [this.#last, this.#counted()]
    this.#last = now
    // An attempt that begins again on the main database counts from 0 again.
    const perSecond = (rise: number) => (Math.max(rise, 0) * 1000) / Math.max(now.at - before.at, 1)
    this.#ring.push({
      rows: perSecond(now.rows - before.rows),
      bytes: perSecond(now.bytes - before.bytes),
      memory: process.memoryUsage.rss(),
      // A sample is the nanoseconds between two timers.
      eventLoop: Math.max(0, this.#eventLoop.percentile(99) / 1e9 - resolutionMs / 1e3),
      firstByte: (this.#parts.streams.takeSlowestFirstByteMs() ?? Number.NaN) / 1000,
      queuedExport: queue?.ageSeconds ?? Number.NaN,
      delivery: deliveries?.oldestSeconds ?? Number.NaN,
    })
    this.#eventLoop.reset()
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#eventLoop.disable()
    await this.#sampling
  }

  #counted(): { at: number; rows: number; bytes: number } {
    const [streamed, stored] = [this.#parts.streams.totals(), this.#parts.attempts.totals()]
    return {
      at: performance.now(),
      rows: streamed.rows + stored.rows,
      bytes: streamed.bytes + stored.bytes,
    }
  }
}
