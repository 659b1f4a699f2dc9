import { strict as assert } from 'node:assert'
import type { ClientBase } from 'pg'

/** One value of the sequence stands for so many ids (see migration 0001). */
const idsPerBlock = 1000

/**
 * Hands out ids, ascending. They come in blocks from the sequence `ids`: millions of rows cost thousands of
 * round trips less, and `next` is free of promises. Ids that are left over when a loader ends are lost, as with
 * any sequence.
 */
export class IdSource {
  readonly #client: ClientBase
  /** First ids of blocks not yet begun, ascending. Ids are below 2^53, so a number holds them. */
  #blocks: number[] = []
  #next = 0
  #left = 0

  constructor(client: ClientBase) {
    this.#client = client
  }

  /** Makes sure that the next `count` calls of `next` succeed. */
  async reserve(count: number): Promise<void> {
    const missing = count - this.#left - this.#blocks.length * idsPerBlock
    if (missing <= 0) return
    const { rows } = await this.#client.query<{ first: string }>(
      `select nextval('grandlivre.ids') as first from generate_series(1, $1::integer)`,
      [Math.ceil(missing / idsPerBlock)],
    )
    for (const row of rows) {
      const first = Number(row.first)
      assert(Number.isSafeInteger(first + idsPerBlock), 'ids stay below 2^53')
      this.#blocks.push(first)
    }
  }

  /** The next id as decimal digits. Without enough reserved ids this is a mistake of the caller (assertion). */
  next(): string {
    if (this.#left === 0) {
      const first = this.#blocks.shift()
      assert(first !== undefined, 'ids must be reserved before they are taken')
      this.#next = first
      this.#left = idsPerBlock
    }
    this.#left -= 1
    return String(this.#next++)
  }
}
