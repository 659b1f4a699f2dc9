/** Cuts the lines of movements into blocks while they are rendered, and hashes each block. */
import { createHash, type Hash } from 'node:crypto'
import { blockSizes } from '../selection.ts'
import type { Block, FormerBlock } from './block.ts'

/**
 * Takes over former blocks that have not changed, without hashing their lines. Cuts the other lines into blocks again,
 * at the former bounds if that leaves no small block.
 *
 * It is called once per entry and once per chunk, not per line, and hashes the lines between two calls in one piece.
 */
export class BlockCutter {
  readonly #former: readonly FormerBlock[]
  readonly #blocks: Block[] = []
  /** Index of the former block that contains the last entry. */
  #passed = -1
  /** The first id of the next former block. */
  #nextFirst = 0
  /** SHA-256 of the block that is being cut. Undefined within former blocks that are taken over. */
  #hash: Hash | undefined
  #first = 0
  #rowsBefore = 0
  /** The block ends with the entry that reaches this number of rows. */
  #rowsMax: number = blockSizes.usual
  /** Position in the chunk of the first line that has not been hashed yet. */
  #from = 0

  /** @param former at least one block; the first begins at 0 */
  constructor(former: readonly FormerBlock[]) {
    this.#former = former
  }

  /**
   * Notes that the next line is the first one of this entry.
   * @param rows number of lines before it
   * @param out the chunk in which the entry begins, at `at`
   */
  beginEntry(id: number, rows: number, out: Uint8Array, at: number): void {
    while (id >= this.#nextFirst) this.#passBound(rows, out, at)
    if (!this.#hash || rows - this.#rowsBefore < this.#rowsMax) return
    this.#close(rows, out, at)
    this.#open(id, rows, at)
    this.#rowsMax = blockSizes.usual
  }

  /** Notes that the chunk ends at `at`; the next one begins at 0. */
  endChunk(out: Uint8Array, at: number): void {
    this.#hash?.update(out.subarray(this.#from, at))
    this.#from = 0
  }

  /**
   * Ends the last block. Called after the last chunk.
   * @param rows number of all lines
   */
  end(rows: number): Block[] {
    const noBytes = new Uint8Array()
    while (this.#nextFirst !== Number.POSITIVE_INFINITY) this.#passBound(rows, noBytes, 0)
    this.#close(rows, noBytes, 0)
    return this.#blocks
  }

  /** Goes on to the next former block. All further lines are in its range or in a later one. */
  #passBound(rows: number, out: Uint8Array, at: number): void {
    const former = this.#former[++this.#passed]!
    const next = this.#former[this.#passed + 1]
    this.#nextFirst = next?.first ?? Number.POSITIVE_INFINITY
    // The last block grows by every new entry.
    this.#rowsMax = next ? blockSizes.most : blockSizes.usual
    if (!former.changed) {
      this.#close(rows, out, at)
      const { changed: _, ...block } = former
      this.#blocks.push(block)
    } else if (!this.#hash) this.#open(former.first, rows, at)
    else if (rows - this.#rowsBefore >= blockSizes.least) {
      this.#close(rows, out, at)
      this.#open(former.first, rows, at)
    }
  }

  #open(first: number, rows: number, at: number): void {
    this.#hash = createHash('sha256')
    this.#first = first
    this.#rowsBefore = rows
    this.#from = at
  }

  #close(rows: number, out: Uint8Array, at: number): void {
    if (!this.#hash) return
    const sha256 = this.#hash.update(out.subarray(this.#from, at)).digest('hex')
    this.#hash = undefined
    const block = { first: this.#first, rows: rows - this.#rowsBefore, sha256 }
    // An empty range belongs to the block before it.
    if (block.rows > 0 || this.#blocks.length === 0) this.#blocks.push(block)
  }
}
