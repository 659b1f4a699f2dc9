/** The lines of JSON in an answer of many ledgers (docs/spec/ledgers.md#lines), each with its line feed. */

import { createHash, type Hash } from 'node:crypto'
import { type LedgerTableName, ledgerTables } from '../../../../packages/contract/src/ledger-tables.ts'
import { unavailableIfMissing } from '../../../db/outage.ts'
import { AppError } from '../../../errors.ts'
import { UnsupportedByFormat } from '../../../formats/file-formats.ts'
import type { EntryRange } from '../../../ledger/changes/entry-ranges.ts'
import { type Block, blockItems, digestOf } from '../../blocks/block.ts'
import { shownDigests, type TableDigests } from '../../blocks/kept-blocks.sql.ts'
import { jsonLine } from '../../render/framing.ts'
import type { AskedLedger, LedgerEnd } from './task.ts'

/** Maximum number of ranges in a line. Each takes at most 40 bytes of JSON, and all together less than 1 MiB. */
const rangesMax = 25_000

export function tableLine(table: LedgerTableName): string {
  return jsonLine({ table, columns: ledgerTables[table].columns.map(({ name }) => name) })
}

/**
 * The line with the digests of a ledger (docs/spec/ledgers.md#blocks), and what the audit notes of it.
 * @param withEmployees whether the reader may see the personal data of employees
 */
export function blocksLine(
  society: string,
  cursor: string,
  { blocks, tables }: { blocks: Block[]; tables: TableDigests },
  withEmployees: boolean,
): LedgerEnd {
  const rows = blocks.reduce((sum, block) => sum + block.rows, 0)
  // A former block may have lost all its movements.
  const shown = blockItems(blocks).filter((block) => block.rows > 0)
  const digest = digestOf(shown)
  const shownTables = shownDigests(tables, withEmployees)
  const lines = jsonLine({ society, cursor, rows, digest, tables: shownTables, blocks: shown })
  return { lines, cursor, rows: shown.length, sha256: digest }
}

/** The line that refuses a ledger. */
export function refused({ society }: AskedLedger, error: unknown): LedgerEnd {
  const refusal = refusalOf(error)
  const isMistake = error instanceof AppError && error.status < 500
  const fault = error instanceof Error ? error.stack : String(error)
  const nothing = { cursor: undefined, rows: 0, sha256: undefined }
  const lines = jsonLine({ refused: society, ...refusal })
  return { lines, ...nothing, refusal, fault: isMistake ? undefined : fault }
}

function refusalOf(error: unknown) {
  // The message of this error names the entry.
  if (error instanceof UnsupportedByFormat) return { code: 'ERR-INTERNAL' as const, message: error.message }
  const known = unavailableIfMissing(error)
  const { code, message, issues } = known instanceof AppError ? known : new AppError('ERR-INTERNAL')
  const details = issues?.map((each) => `${each.parameter} ${each.message}`).join('; ')
  return { code, message: details ?? message }
}

/**
 * Returns ranges that fit into a line. If there are too many, neighbours are joined, together with the ids between
 * them.
 */
export function joinedRanges(ranges: readonly EntryRange[]): readonly EntryRange[] {
  const together = Math.ceil(ranges.length / rangesMax)
  if (together <= 1) return ranges
  const groups = Map.groupBy(ranges, (_, i) => Math.floor(i / together))
  return Array.from(groups.values(), (group) => [group[0]![0], group.at(-1)![1]])
}

/**
 * The lines that prove the rows of a ledger (docs/spec/ledgers.md#proofs). A proof follows at most 1 MiB of rows, or one
 * longer row; the last proof follows the last row.
 */

/** Bytes of rows between two proofs, unless a single row has more. */
const provenBytesMax = 1024 * 1024

const lineFeed = 10

/** The proofs of one table. Bytes are hashed once up to the first proof, and twice from there on. */
export class RowProofs {
  /** Number of all rows so far. */
  rows = 0
  #part: Hash = createHash('sha256')
  #partRows = 0
  #partBytes = 0
  /** The hash of all rows. Undefined until the first proof: up to there it equals `#part`. */
  #all: Hash | undefined

  /** Whether a proof must come before this many further bytes. */
  isDue(bytes: number): boolean {
    return this.#partBytes > 0 && this.#partBytes + bytes > provenBytesMax
  }

  /**
   * @param lines whole lines
   * @param rows how many lines these are
   */
  add(lines: Uint8Array, rows: number): void {
    this.#part.update(lines)
    this.#all?.update(lines)
    this.#partBytes += lines.length
    this.#partRows += rows
    this.rows += rows
  }

  /** Returns the proof of the rows since the last proof, as a line. */
  line(): string {
    this.#all ??= this.#part.copy()
    const line = `{"rows":${this.#partRows},"sha256":"${this.#part.digest('hex')}"}\n`
    this.#part = createHash('sha256')
    this.#partRows = 0
    this.#partBytes = 0
    return line
  }

  /** Returns the last line, and the SHA-256 of all rows. */
  end(): { line: string; sha256: string } {
    const line = this.line()
    return { line, sha256: this.#all!.digest('hex') }
  }
}

/**
 * Yields the same chunks of whole lines, with the proofs between them. The caller adds the proof after the last chunk.
 * @param counted returns the number of rows in the chunks so far; if absent, line feeds are counted
 */
export async function* proven(
  chunks: AsyncIterable<Uint8Array<ArrayBuffer>>,
  proofs: RowProofs,
  counted?: () => number,
): AsyncGenerator<Uint8Array<ArrayBuffer> | string> {
  for await (const chunk of chunks) {
    if (chunk.length <= provenBytesMax) {
      if (proofs.isDue(chunk.length)) yield proofs.line()
      proofs.add(chunk, counted ? counted() - proofs.rows : linesIn(chunk))
      yield chunk
      continue
    }
    for (const lines of shortEnough(chunk)) {
      if (proofs.isDue(lines.length)) yield proofs.line()
      proofs.add(lines, linesIn(lines))
      // Copied, because a chunk may be transferred to another thread with its buffer, which other chunks share.
      yield lines.slice()
    }
  }
}

/** Cuts a chunk where lines end. */
function* shortEnough(chunk: Uint8Array<ArrayBuffer>): Generator<Uint8Array<ArrayBuffer>> {
  for (let from = 0, to: number; from < chunk.length; from = to) {
    const last = chunk.subarray(0, from + provenBytesMax).lastIndexOf(lineFeed)
    to = (last >= from ? last : chunk.indexOf(lineFeed, from)) + 1
    yield chunk.subarray(from, to)
  }
}

function linesIn(chunk: Uint8Array): number {
  let lines = 0
  for (let at = chunk.indexOf(lineFeed); at >= 0; at = chunk.indexOf(lineFeed, at + 1)) lines++
  return lines
}
