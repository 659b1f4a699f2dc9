/** The last samples of several series, in memory that does not grow. */

/** One every ten seconds, for an hour. */
export const sampleEveryMs = 10_000
export const samplesMax = 360

export class Ring<Name extends string> {
  readonly #series: ReadonlyMap<Name, Float64Array>
  #next = 0

  constructor(names: readonly Name[]) {
    this.#series = new Map(names.map((name) => [name, new Float64Array(samplesMax).fill(Number.NaN)]))
  }

  /** NaN stands for what was not measured. */
  push(sample: Readonly<Record<Name, number>>): void {
    for (const [name, values] of this.#series) values[this.#next] = sample[name]
    this.#next = (this.#next + 1) % samplesMax
  }

  /** Oldest first, always `samplesMax`; NaN where there is none. */
  values(name: Name): Float64Array {
    const values = this.#series.get(name)!
    const ordered = new Float64Array(samplesMax)
    ordered.set(values.subarray(this.#next))
    ordered.set(values.subarray(0, this.#next), samplesMax - this.#next)
    return ordered
  }
}
