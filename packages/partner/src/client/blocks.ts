/** Digests of a selection's movements, by ranges of entry ids (docs/spec/changes.md#blocks). */
import { createHash } from 'node:crypto'
import { clientError } from './errors.ts'
import { lastEntryId } from './ledgers/entry-ranges.ts'
import { acceptJson, type Requests } from './requests.ts'
import { type MovementSelection, queryOf } from './selection.ts'

/** A range of entries and what the ledger has in it. */
export interface Block {
  /** Ids of entries, both included, as decimal digits. */
  from: string
  to: string
  /** Movements in the range. */
  rows: number
  /** SHA-256 of their NDJSON lines, each with its line feed; hexadecimal. */
  sha256: string
}

export interface Blocks {
  /** Consecutive: the first begins at 0, the last ends at 9007199254740991. */
  blocks: Block[]
  /** Names the state of the ledger of which they are. */
  cursor: string
  /** SHA-256 of all digests, as bytes, in order; hexadecimal. */
  digest: string
}

/** @throws {GrandlivreError} NOT-PROVEN if the blocks do not fit together or differ from their digest */
export async function readBlocks(requests: Requests, selection: MovementSelection, signal?: AbortSignal) {
  const query = queryOf(selection, 'movements')
  const { answer, value } = await requests.json({
    path: '/mad/movements/blocks',
    query,
    headers: acceptJson(),
    signal,
  })
  const { 'x-ledger-cursor': cursor, 'x-ledger-digest': digest, 'x-request-id': requestId } = answer.headers
  if (cursor === undefined || digest === undefined)
    throw clientError(
      'UNEXPECTED-ANSWER',
      'The blocks came without X-Ledger-Cursor or X-Ledger-Digest: a proxy on the way may remove these headers',
      { status: answer.status, requestId },
    )
  const blocks = value as Block[]
  if (!areConsecutive(blocks) || digestOf(blocks.map(({ sha256 }) => sha256)) !== digest)
    throw clientError(
      'NOT-PROVEN',
      'The blocks of the ledger do not fit together, or differ from their digest',
      { requestId },
    )
  return { blocks, cursor, digest }
}

function areConsecutive(blocks: Block[]): boolean {
  let next = 0n
  for (const { from, to } of blocks) {
    if (BigInt(from) !== next) return false
    next = BigInt(to) + 1n
  }
  return next === BigInt(lastEntryId) + 1n
}

/** The SHA-256 of digests, as bytes, in order; hexadecimal. */
export function digestOf(digests: readonly string[]): string {
  const hash = createHash('sha256')
  for (const digest of digests) hash.update(digest, 'hex')
  return hash.digest('hex')
}

export function rowsOf(blocks: readonly Block[]): number {
  return blocks.reduce((sum, { rows }) => sum + rows, 0)
}

/** Compares the lines of a selection with its blocks while they pass. Lines come in the order of blocks. */
export class BlockCheck {
  readonly #blocks: readonly Block[]
  #place = 0
  #rowsLeft: number
  #hash = createHash('sha256')
  /** The first rows of a block were not seen, so its digest cannot be compared. */
  #isPartial = false

  /** @param rowsBefore rows that were received before, and are not seen here */
  constructor(blocks: readonly Block[], rowsBefore = 0) {
    this.#blocks = blocks
    this.#rowsLeft = blocks[0]?.rows ?? 0
    let skipped = rowsBefore
    while (skipped > 0 && this.#place < blocks.length) {
      const rows = Math.min(skipped, this.#rowsLeft)
      skipped -= rows
      this.#rowsLeft -= rows
      this.#isPartial = this.#rowsLeft > 0
      if (this.#rowsLeft === 0) this.#enter(this.#place + 1)
    }
    if (skipped > 0) throw tooMany()
    this.#closeEmpty()
  }

  /** Whether every row of every block has passed. */
  get isComplete(): boolean {
    return this.#place === this.#blocks.length
  }

  /**
   * @param lines whole lines
   * @throws {GrandlivreError} NOT-PROVEN
   */
  pass(lines: Uint8Array): void {
    let start = 0
    let end = 0
    while (end < lines.length) {
      if (this.isComplete) throw tooMany()
      end = lines.indexOf(10, end) + 1
      this.#rowsLeft -= 1
      if (this.#rowsLeft > 0) continue
      this.#hash.update(lines.subarray(start, end))
      start = end
      this.#close()
    }
    this.#hash.update(lines.subarray(start))
  }

  #close(): void {
    const { from, to, sha256 } = this.#blocks[this.#place]!
    if (!this.#isPartial && this.#hash.digest('hex') !== sha256)
      throw clientError('NOT-PROVEN', `The movements of entries ${from} to ${to} differ from the ledger`)
    this.#enter(this.#place + 1)
    this.#closeEmpty()
  }

  #enter(place: number): void {
    this.#place = place
    this.#rowsLeft = this.#blocks[place]?.rows ?? 0
    this.#hash = createHash('sha256')
    this.#isPartial = false
  }

  #closeEmpty(): void {
    while (!this.isComplete && this.#rowsLeft === 0) this.#enter(this.#place + 1)
  }
}

function tooMany(): Error {
  return clientError('NOT-PROVEN', 'More movements arrived than the ledger has in its blocks')
}
