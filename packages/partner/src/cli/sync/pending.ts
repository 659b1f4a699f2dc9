/** Which changed entries no part has shown yet: as long as there are some, another part may have them. Pure. */
import type { EntryRange } from './targets/target.ts'

/** More are not followed one by one. */
const idsMax = 2_000

export class Pending {
  readonly #ids = new Set<number>()
  /** Found at the cursor: another part cannot have them. */
  readonly #seen = new Set<number>()
  #cursor: string | undefined
  #isEverything = false

  get isEmpty(): boolean {
    return !this.#isEverything && this.#ids.size === 0
  }

  /**
   * @param ranges that name entries of the whole folder
   * @param cursor up to which they have changed: an entry that was found at an earlier one may have moved since
   */
  add(ranges: readonly EntryRange[], cursor: string): void {
    if (cursor !== this.#cursor) this.#seen.clear()
    this.#cursor = cursor
    const count = ranges.reduce((sum, [from, to]) => sum + Number(to) - Number(from) + 1, 0)
    if (count > idsMax) this.#isEverything = true
    if (this.#isEverything) return
    for (const [from, to] of ranges)
      for (let id = Number(from); id <= Number(to); id += 1) if (!this.#seen.has(id)) this.#ids.add(id)
  }

  /** A part has this entry. */
  found(id: number): void {
    this.#seen.add(id)
    this.#ids.delete(id)
  }
}
