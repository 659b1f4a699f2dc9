/** How fast counters rise, from the times at which pages looked at them. */

/** Rates are of the last seconds: shorter spans jump, longer ones lag. */
const spanMs = 5_000
/** A counter that nobody has looked at for this long has ended, or its page was closed. */
const forgottenMs = 60_000

interface Look {
  at: number
  count: number
}

export class Rates {
  readonly #looks = new Map<string, Look[]>()
  readonly #now: () => number

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now
  }

  /**
   * @param since when the counter was 0, in milliseconds
   * @returns how much it rises in a second
   */
  perSecond(name: string, count: number, since: number): number {
    const now = this.#now()
    this.#forget(now)
    const looks = this.#looks.get(name) ?? [{ at: since, count: 0 }]
    looks.push({ at: now, count })
    // One look before the span stays, to measure from.
    while (looks.length > 2 && now - looks[1]!.at >= spanMs) looks.shift()
    this.#looks.set(name, looks)
    const [first] = looks
    const ms = now - first!.at
    return ms <= 0 ? 0 : Math.max(0, ((count - first!.count) * 1000) / ms)
  }

  #forget(now: number): void {
    for (const [name, looks] of this.#looks)
      if (now - looks.at(-1)!.at > forgottenMs) this.#looks.delete(name)
  }
}
