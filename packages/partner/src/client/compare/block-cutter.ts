/** Compares the lines of a copy with the blocks of a ledger. */
import { Buffer } from 'node:buffer'
import { createHash, type Hash } from 'node:crypto'
import type { Block } from '../blocks.ts'
import type { EntryRange } from '../changes.ts'

/**
 * The least and the greatest id that a database can hold. A row that somebody has made may lie beyond the ids of the
 * service.
 */
const [least, most] = ['-9223372036854775808', '9223372036854775807']

/** Returns the entry of the line that begins at `start` and ends before `end`. */
type EntryAt = (lines: Buffer, start: number, end: number) => number

/** Cuts lines where blocks begin and end. Lines come in ascending order of their entries. */
export class BlockCutter {
  readonly #blocks: readonly Block[]
  readonly #entryAt: EntryAt
  /** Index of the current or next block. Its bounds are numbers: ids of the service are exact as numbers. */
  #place = 0
  #from = 0
  #to = 0
  #hash: Hash = createHash('sha256')
  #rows = 0
  #rowsOutside = 0
  #total = 0
  readonly #differing: EntryRange[] = []
  readonly #outside: EntryRange[] = []

  constructor(blocks: readonly Block[], entryAt: EntryAt) {
    this.#blocks = blocks
    this.#entryAt = entryAt
    this.#enter(0)
  }

  pass({ buffer, byteOffset, length }: Uint8Array): void {
    const lines = Buffer.from(buffer, byteOffset, length)
    // The lines of one block are hashed in one call.
    let start = 0
    for (let at = 0; at < lines.length; ) {
      const next = lines.indexOf(10, at) + 1
      const id = this.#entryAt(lines, at, next)
      while (id > this.#to) {
        this.#hash.update(lines.subarray(start, at))
        start = at
        this.#close()
      }
      this.#total += 1
      if (id >= this.#from) this.#rows += 1
      else {
        this.#rowsOutside += 1
        start = next
      }
      at = next
    }
    this.#hash.update(lines.subarray(start))
  }

  /** @returns the ranges of the blocks that differ, and the ranges outside of blocks in which rows lie */
  end(): { rows: number; differing: EntryRange[]; outside: EntryRange[] } {
    while (this.#place < this.#blocks.length) this.#close()
    this.#noteOutside()
    return { rows: this.#total, differing: this.#differing, outside: this.#outside }
  }

  #close(): void {
    this.#noteOutside()
    const { from, to, rows, sha256 } = this.#blocks[this.#place]!
    if (this.#hash.digest('hex') !== sha256 || this.#rows !== rows) this.#differing.push([from, to])
    this.#hash = createHash('sha256')
    this.#rows = 0
    this.#enter(this.#place + 1)
  }

  #enter(place: number): void {
    this.#place = place
    const block = this.#blocks[place]
    this.#from = block ? Number(block.from) : Number.POSITIVE_INFINITY
    this.#to = block ? Number(block.to) : Number.POSITIVE_INFINITY
  }

  /** Notes rows that lie between the previous block and the current one. */
  #noteOutside(): void {
    if (this.#rowsOutside === 0) return
    const [before, after] = [this.#blocks[this.#place - 1], this.#blocks[this.#place]]
    this.#outside.push([
      before ? String(BigInt(before.to) + 1n) : least,
      after ? String(BigInt(after.from) - 1n) : most,
    ])
    this.#rowsOutside = 0
  }
}
