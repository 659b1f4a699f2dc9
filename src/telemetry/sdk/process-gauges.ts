/** The delay of the main thread's event loop, and how much memory and processor time the process uses. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Observe } from './observations.ts'

/** How often the delay is sampled: 50 timers a second. */
const resolutionMs = 20
/**
 * Least length of a window of samples. Its values are shown and then the next window begins, however many scrapers
 * there are.
 */
const windowMs = 5_000

/** @param everyMs the least length of a window. @returns function that ends the sampling */
export function watchProcess(observe: Observe, everyMs = windowMs): () => void {
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs })
  histogram.enable()
  let shown = { p50: 0, p99: 0, max: 0 }
  let began = performance.now()
  const delays = () => {
    if (performance.now() - began >= everyMs && histogram.count > 0) {
      // A sample is the time between two timers, so the interval of the timer is subtracted.
      const seconds = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - resolutionMs / 1e3)
      const [p50, p99, max] = [histogram.percentile(50), histogram.percentile(99), histogram.max].map(seconds)
      shown = { p50: p50!, p99: p99!, max: max! }
      histogram.reset()
      began = performance.now()
    }
    return shown
  }
  observe('nodejs.eventloop.delay.p50', () => delays().p50)
  observe('nodejs.eventloop.delay.p99', () => delays().p99)
  observe('nodejs.eventloop.delay.max', () => delays().max)
  observe('process.memory.usage', () => process.memoryUsage.rss())
  observe('process.cpu.time', () => {
    const { user, system } = process.cpuUsage()
    return [
      { value: user / 1e6, labels: { 'cpu.mode': 'user' } },
      { value: system / 1e6, labels: { 'cpu.mode': 'system' } },
    ]
  })
  return () => histogram.disable()
}
