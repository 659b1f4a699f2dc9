/**
 * A value that takes a while to read, such as a statement on the database: read at most every few seconds, once at a
 * time, and never waited for long. Nobody may wait for metrics of a database that is away.
 */

/** How old a reading may be. Several scrapers then cost one statement. */
const keptMs = 2_000
/** How long a collection waits for a reading: Prometheus gives up after ten seconds. */
const defaultWaitMs = 1_500

export class Reading<Value> {
  readonly #read: () => Promise<Value> | Value
  readonly #now: () => number
  readonly #waitMs: number
  #latest: { value: Value; at: number } | undefined
  #running: Promise<Value | undefined> | undefined

  /** @param now milliseconds, monotonic */
  constructor(
    read: () => Promise<Value> | Value,
    now: () => number = () => performance.now(),
    waitMs = defaultWaitMs,
  ) {
    this.#read = read
    this.#now = now
    this.#waitMs = waitMs
  }

  /** Undefined if it failed or takes too long. */
  async latest(): Promise<Value | undefined> {
    if (this.#latest && this.#now() - this.#latest.at < keptMs) return this.#latest.value
    this.#running ??= this.#readOnce().finally(() => {
      this.#running = undefined
    })
    const { promise: tooLate, resolve } = Promise.withResolvers<undefined>()
    const timer = setTimeout(resolve, this.#waitMs, undefined)
    try {
      return await Promise.race([this.#running, tooLate])
    } finally {
      clearTimeout(timer)
    }
  }

  async #readOnce(): Promise<Value | undefined> {
    try {
      const value = await this.#read()
      this.#latest = { value, at: this.#now() }
      return value
    } catch {
      return undefined
    }
  }
}
