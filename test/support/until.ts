import { setTimeout as delay } from 'node:timers/promises'

const pauseMs = { least: 2, most: 250 }

/**
 * Polls a condition until it holds; the test's own timeout ends a hopeless wait. Pauses are a
 * quarter of the time already waited: many tests wait at once, and steady requests would slow down what they wait for.
 */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const start = Date.now()
  while (!(await holds())) {
    const quarter = (Date.now() - start) / 4
    await delay(Math.min(Math.max(pauseMs.least, quarter), pauseMs.most))
  }
}
