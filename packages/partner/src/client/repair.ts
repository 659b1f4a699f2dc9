/** Compares a copy with the ledger by the digests of blocks, and reads again what differs (docs/spec/changes.md#blocks). */
import { type Block, digestOf, readBlocks, rowsOf } from './blocks.ts'
import { type EntryRange, rangesMax } from './changes.ts'
import { clientError, GrandlivreError } from './errors.ts'
import type { Requests } from './requests.ts'
import { type MovementSelection, queryOf } from './selection.ts'
import { Transfer } from './stream.ts'

/** A copy of a selection of movements, one NDJSON line each. */
export interface LedgerCopy {
  /** Names the state of the ledger that the copy shows. */
  cursor: string
  /** SHA-256 of the copy's lines in each range, each line with its line feed, in the order of the ledger; hexadecimal. */
  digests(ranges: EntryRange[]): Promise<string[]>
  /** Drops what the copy has in the ranges and takes the lines instead: whole lines, many at a time. All or nothing. */
  replace(ranges: EntryRange[], lines: AsyncIterable<Uint8Array>): Promise<void>
  /** Applies the changes since its cursor, and resolves with the new one. */
  catchUp(): Promise<string>
}

export interface Repaired {
  /** Blocks that are equal now: all of them. */
  blocks: number
  /** Blocks that were read again. */
  repaired: number
  /** Movements in the selection. */
  rows: number
  cursor: string
}

const comparisonsMax = 10

/** @throws {GrandlivreError} COPY-DIFFERS if it still differs after several attempts */
export async function repairCopy(
  requests: Requests,
  selection: MovementSelection,
  copy: LedgerCopy,
  signal?: AbortSignal,
): Promise<Repaired> {
  let copyCursor = copy.cursor
  let repaired = 0
  for (let comparison = 1; comparison <= comparisonsMax; comparison += 1) {
    const { blocks, cursor, digest } = await readBlocks(requests, selection, signal)
    if (cursor !== copyCursor) {
      // The ledger has changed since the copy was brought up to date.
      copyCursor = await copy.catchUp()
      continue
    }
    const digests = await copy.digests(blocks.map(rangeOf))
    const wrong = blocks.filter(({ sha256 }, place) => sha256 !== digests[place])
    if (wrong.length === 0 && digestOf(digests) === digest)
      return { blocks: blocks.length, repaired, rows: rowsOf(blocks), cursor }
    for (let first = 0; first < wrong.length; first += rangesMax) {
      const group = wrong.slice(first, first + rangesMax)
      if (!(await replaceBlocks(requests, selection, copy, group, cursor, signal))) break
      repaired += group.length
    }
  }
  throw clientError(
    'COPY-DIFFERS',
    `After ${comparisonsMax} comparisons the copy still differs from the ledger`,
  )
}

/**
 * What is read may be newer than the cursor. The next changes name its entries then, too.
 * @returns false if the ledger changed while it was read
 */
async function replaceBlocks(
  requests: Requests,
  selection: MovementSelection,
  copy: LedgerCopy,
  blocks: Block[],
  cursor: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const ranges = blocks.map(rangeOf)
  const source = {
    streamed: 'movements' as const,
    query: { ...queryOf(selection, 'movements'), entries: ranges.map((range) => range.join('-')).join(',') },
    blocks: async () => ({ blocks, cursor, digest: '' }),
  }
  try {
    await copy.replace(ranges, new Transfer(requests, source, { signal }).chunks())
    return true
  } catch (error) {
    if (error instanceof GrandlivreError && error.code === 'LEDGER-CHANGED') return false
    throw error
  }
}

function rangeOf({ from, to }: Block): EntryRange {
  return [from, to]
}
