import { strict as assert } from 'node:assert'
import type { ClientBase } from 'pg'

/** The number of ids that each value of the sequence `ids` stands for (db/schema.sql). */
export const idsPerBlock = 1000

/**
 * Hands out ids, ascending, in blocks from the sequence `ids`. Blocks save thousands of round trips per million rows,
 * and `next` needs no promise. Ids left over when a loader ends are lost, as with any sequence. All ids stay below
 * 2^53, since JSON clients hold numbers as doubles; in TypeScript they travel as decimal strings.
 */
export class IdSource {
  readonly #client: ClientBase
  /** The first id of each unused block, ascending. Ids are below 2^53, so a number holds them. */
  #blocks: number[] = []
  #next = 0
  #left = 0

  constructor(client: ClientBase) {
    this.#client = client
  }

  /** Whether the next `count` calls of `next` will succeed without reserving more ids. */
  has(count: number): boolean {
    return count <= this.#left + this.#blocks.length * idsPerBlock
  }

  /** Reserves ids so that the next `count` calls of `next` succeed. */
  async reserve(count: number): Promise<void> {
    if (this.has(count)) return
    const missing = count - this.#left - this.#blocks.length * idsPerBlock
    const text = `select first from grandlivre.draw_several('grandlivre.ids', $1) as first`
    const { rows } = await this.#client.query<{ first: string }>(text, [Math.ceil(missing / idsPerBlock)])
    const blocks = rows.map(({ first }) => Number(first))
    assert(Number.isSafeInteger((blocks.at(-1) ?? 0) + idsPerBlock), 'ids stay below 2^53')
    this.#blocks.push(...blocks)
  }

  /** The next id as decimal digits. Asserts that enough ids are reserved. */
  next(): string {
    if (this.#left === 0) {
      const first = this.#blocks.shift()
      assert(first !== undefined, 'ids must be reserved before they are used')
      this.#next = first
      this.#left = idsPerBlock
    }
    this.#left -= 1
    return String(this.#next++)
  }
}

/** Ids that count the rows of a file, from 1. */
export function countingIds(): Pick<IdSource, 'has' | 'reserve' | 'next'> {
  let last = 0
  return { has: () => true, reserve: async () => {}, next: () => String(++last) }
}
