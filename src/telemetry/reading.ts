/**
 * A value that takes a while to read, such as the result of a statement. It is read at most every few seconds and by
 * one reader at a time, and callers wait for it only briefly: metrics must not wait for a database that is away.
 */

/** How long a reading is used again, so that several scrapers cost one statement. */
const keptMs = 2_000
/** How long a collection waits for a reading: Prometheus gives up after ten seconds. */
const defaultWaitMs = 1_500

export type Reading<Value> = ReturnType<typeof createReading<Value>>

/** @param now clock, in monotonic milliseconds */
export function createReading<Value>(
  read: () => Promise<Value> | Value,
  now: () => number = () => performance.now(),
  waitMs = defaultWaitMs,
) {
  let last: { value: Value; at: number } | undefined
  let running: Promise<Value | undefined> | undefined
  const readOnce = async () => {
    try {
      const value = await read()
      last = { value, at: now() }
      return value
    } catch {
      return undefined
    }
  }
  /** The latest reading; undefined if reading fails or takes too long. */
  const latest = async (): Promise<Value | undefined> => {
    if (last && now() - last.at < keptMs) return last.value
    running ??= readOnce().finally(() => {
      running = undefined
    })
    const { promise: tooLate, resolve } = Promise.withResolvers<undefined>()
    const timer = setTimeout(resolve, waitMs, undefined)
    try {
      return await Promise.race([running, tooLate])
    } finally {
      clearTimeout(timer)
    }
  }
  return { latest }
}
