/** Digests of a selection's movements, by ranges of entry ids (docs/spec/changes.md#blocks). */
import { createHash } from 'node:crypto'
import { clientError } from './errors.ts'
import { answerFacts } from './http/answer.ts'
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
  const { 'x-ledger-cursor': cursor, 'x-ledger-digest': digest } = answer.headers
  if (cursor === undefined || digest === undefined)
    throw clientError(
      'UNEXPECTED-ANSWER',
      'The blocks came without X-Ledger-Cursor or X-Ledger-Digest: a proxy on the way may remove these headers',
      answerFacts(answer),
    )
  const blocks = value as Block[]
  if (!areConsecutive(blocks) || digestOf(blocks.map(({ sha256 }) => sha256)) !== digest)
    throw clientError(
      'NOT-PROVEN',
      'The blocks of the ledger do not fit together, or differ from their digest',
      answerFacts(answer),
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
  /** The block whose rows pass now. Blocks without rows are passed over. */
  #place = -1
  #rowsLeft = 0
  #hash = createHash('sha256')
  /** The first rows of the block were not seen, so its digest cannot be compared. */
  #isPartial = false

  /** @param rowsBefore rows that were received before, and are not seen here */
  constructor(blocks: readonly Block[], rowsBefore = 0) {
    this.#blocks = blocks
    this.#enterNext()
    for (let unseen = rowsBefore; unseen > 0; ) {
      if (this.isComplete) throw tooMany()
      const rows = Math.min(unseen, this.#rowsLeft)
      unseen -= rows
      this.#rowsLeft -= rows
      this.#isPartial = true
      if (this.#rowsLeft === 0) this.#enterNext()
    }
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
      const { from, to, sha256 } = this.#blocks[this.#place]!
      if (!this.#isPartial && this.#hash.digest('hex') !== sha256)
        throw clientError('NOT-PROVEN', `The movements of entries ${from} to ${to} differ from the ledger`)
      this.#enterNext()
    }
    this.#hash.update(lines.subarray(start))
  }

  #enterNext(): void {
    do this.#place += 1
    while (this.#blocks[this.#place]?.rows === 0)
    this.#rowsLeft = this.#blocks[this.#place]?.rows ?? 0
    this.#hash = createHash('sha256')
    this.#isPartial = false
  }
}

const tooMany = () => clientError('NOT-PROVEN', 'More movements arrived than the ledger has in its blocks')
