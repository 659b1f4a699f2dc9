/** Digests of the movements of a selection, by ranges of entry ids (docs/spec/changes.md#blocks). */
import { createHash } from 'node:crypto'
import { clientError } from './errors.ts'
import { answerFacts } from './http/answer.ts'
import { lastEntryId } from './ledgers/entry-ranges.ts'
import { acceptJson, type Requests } from './requests.ts'
import { type MovementSelection, queryOf } from './selection.ts'

/** A range of entries, with the number and the digest of its movements in the ledger. */
export interface Block {
  /** Ids of the first and last entry, both included, as decimal digits. */
  from: string
  to: string
  /** Number of movements in the range. */
  rows: number
  /** SHA-256 of the NDJSON lines of these movements, each with its line feed; hexadecimal. */
  sha256: string
}

export interface Blocks {
  /** Blocks without gaps: the first begins at 0, the last ends at 9007199254740991. */
  blocks: Block[]
  /** Names the state of the ledger that the digests describe. */
  cursor: string
  /** SHA-256 of the digests of all blocks, as bytes in the order of the blocks; hexadecimal. */
  digest: string
}

/** @throws {GrandlivreError} NOT-PROVEN if the blocks do not fit together, or disagree with their common digest */
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
  if (!areConsecutive(blocks) || commonDigestOf(blocks) !== digest)
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

/** The SHA-256 of the digests of all blocks, as bytes in the order of the blocks; hexadecimal. */
export function commonDigestOf(blocks: readonly Block[]): string {
  const hash = createHash('sha256')
  for (const { sha256 } of blocks) hash.update(sha256, 'hex')
  return hash.digest('hex')
}

export function rowsOf(blocks: readonly Block[]): number {
  return blocks.reduce((sum, { rows }) => sum + rows, 0)
}

/** Compares lines with the blocks of their selection while they arrive. Lines come in the order of the blocks. */
export class BlockCheck {
  readonly #blocks: readonly Block[]
  /** Index of the block that the next row belongs to. Blocks without rows are skipped. */
  #place = -1
  #rowsLeft = 0
  #hash = createHash('sha256')
  /** Whether an earlier reader received the first rows of the block. Its digest cannot be compared then. */
  #isPartial = false

  /** @param rowsBefore number of rows that an earlier reader received */
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

  /** Whether all rows of all blocks have passed. */
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
