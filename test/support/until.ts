import { setTimeout as delay } from 'node:timers/promises'

/** Milliseconds between two checks of a condition in this process. */
const memoryMs = 5
/** Milliseconds between two checks of a condition that sends a request; see until. */
const requestMs = { least: 50, most: 250 }

/**
 * Polls a condition until it holds; the test's own timeout ends a hopeless wait. If the condition is a promise, it asks
 * a server, and the pause grows to a quarter of the time already waited: many tests wait at once, and steady requests
 * would slow down what they wait for.
 */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const start = Date.now()
  for (;;) {
    const held = holds()
    if (await held) return
    const quarter = (Date.now() - start) / 4
    const pause = Math.min(Math.max(requestMs.least, quarter), requestMs.most)
    await delay(typeof held === 'boolean' ? memoryMs : pause)
  }
}
