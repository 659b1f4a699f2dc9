/** What the charts of the process show: a sample every ten seconds for an hour, while the console runs. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { RunningStreams } from '../http/stream/running-streams.ts'
import type { RunningAttempts } from '../jobs/running-attempts.ts'

const sampleEveryMs = 10_000
/** Samples of an hour. */
export const samplesMax = 360

/** How often the delay of the event loop is sampled. */
const resolutionMs = 20

/**
 * How long the oldest full export and the oldest delivery have waited, from the readings of the metrics; undefined if
 * currently unknown.
 */
export interface LatestStanding {
  queue: { latest(): Promise<{ ageSeconds: number } | undefined> }
  deliveries: { latest(): Promise<{ oldestSeconds: number } | undefined> }
}

export type History = ReturnType<typeof recordHistory>

export function recordHistory(measured: {
  streams: RunningStreams
  attempts: RunningAttempts
  standing: LatestStanding
}) {
  const { streams, attempts, standing } = measured
  const counted = () => {
    const [streamed, stored] = [streams.totals(), attempts.totals()]
    return {
      at: performance.now(),
      rows: streamed.rows + stored.rows,
      bytes: streamed.bytes + stored.bytes,
    }
  }
  const eventLoop = monitorEventLoopDelay({ resolution: resolutionMs })
  eventLoop.enable()
  let last = counted()
  /** A value for each chart; NaN if nothing was measured. */
  const measure = async () => {
    // A database that cannot be reached leaves a gap in its curves.
    const [queue, deliveries] = await Promise.all([standing.queue.latest(), standing.deliveries.latest()])
    const [before, now] = [last, counted()]
    last = now
    // The rise is negative if an attempt begins again on the main database: it then counts from 0 again.
    const perSecond = (rise: number) => (Math.max(rise, 0) * 1000) / Math.max(now.at - before.at, 1)
    // Seconds: a sample is the nanoseconds between two timers, so the interval of the timer is subtracted.
    const delay = Math.max(0, eventLoop.percentile(99) / 1e9 - resolutionMs / 1e3)
    eventLoop.reset()
    return {
      rows: perSecond(now.rows - before.rows),
      bytes: perSecond(now.bytes - before.bytes),
      /** Bytes of memory of the process, with its threads. */
      memory: process.memoryUsage.rss(),
      /** The delay of the event loop, in seconds. */
      eventLoop: delay,
      /** The slowest first byte of a stream, in seconds. */
      firstByte: (streams.takeSlowestFirstByteMs() ?? Number.NaN) / 1000,
      /** Seconds that the oldest queued export has waited. */
      queuedExport: queue?.ageSeconds ?? Number.NaN,
      /** Seconds that the oldest delivery has waited, only for receivers that do not fail. */
      delivery: deliveries?.oldestSeconds ?? Number.NaN,
    }
  }
  const samples: Awaited<ReturnType<typeof measure>>[] = []
  const sample = async () => {
    samples.push(await measure())
    if (samples.length > samplesMax) samples.shift()
  }
  let sampling: Promise<void> = Promise.resolve()
  const timer = setInterval(() => {
    sampling = sample()
  }, sampleEveryMs).unref()
  return {
    sample,
    /** Values of the last hour, the oldest first; NaN for the time before the process began. */
    values: (name: keyof (typeof samples)[number]) => [
      ...Array<number>(samplesMax - samples.length).fill(Number.NaN),
      ...samples.map((each) => each[name]),
    ],
    close: async () => {
      clearInterval(timer)
      eventLoop.disable()
      await sampling
    },
  }
}
