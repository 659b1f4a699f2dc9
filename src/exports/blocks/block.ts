/**
 * Digests of movements by consecutive ranges of entry ids: what a client compares with its copy
 * (docs/spec/changes.md#blocks). Pure.
 */
import { createHash } from 'node:crypto'
import type { StreamedForm } from '../../formats/file-formats.ts'
import type { EntryRange } from '../../ledger/changes/entry-ranges.ts'
import { framed, framings } from '../render/framing.ts'
import { blockSizes, picksEntries, type Selection, tagOf } from '../selection.ts'

/** A range of entry ids: up to the first id of the next block, or to the greatest id. */
export interface Block {
  /** The lowest entry id of the range. The first block begins at 0. */
  first: number
  /** Number of its movements. */
  rows: number
  /** SHA-256 of its lines in NDJSON, or of its rows of COPY, hexadecimal. */
  sha256: string
}

/** What the headers of an answer state of its blocks. */
export interface BlocksHead {
  /** The SHA-256 of all digests as bytes, hexadecimal. */
  digest: string
  /** Names the blocks if they depend on more than the selection and the ledger; part of the ETag. */
  bounds: string | undefined
}

/** Whether the digests of a selection are kept: those of the validated movements of one exercice. */
export function isKept(selection: Selection): selection is Selection & { exerciceId: string } {
  const { exerciceId, draft, accountRoots, lettering } = selection
  return (
    exerciceId !== undefined &&
    draft === false &&
    accountRoots.length === 0 &&
    lettering === undefined &&
    !picksEntries(selection)
  )
}

export function headOf(blocks: readonly Block[], selection: Selection): BlocksHead {
  // The bounds of kept blocks depend on the past of the blocks.
  return { digest: digestOf(blocks), bounds: isKept(selection) ? tagOf(blocks) : undefined }
}

/** The SHA-256 of all digests as bytes, hexadecimal. */
export function digestOf(blocks: readonly Pick<Block, 'sha256'>[]): string {
  const digest = createHash('sha256')
  for (const { sha256 } of blocks) digest.update(sha256, 'hex')
  return digest.digest('hex')
}

/** The blocks as answers show them, with both ends of their ranges. */
export function blockItems(blocks: readonly Block[]) {
  return blocks.map(({ first, rows, sha256 }, i) => {
    const next = blocks[i + 1]
    const to = next ? next.first - 1 : Number.MAX_SAFE_INTEGER
    return { from: String(first), to: String(to), rows, sha256 }
  })
}

/** The body of an answer. */
export function blocksText(blocks: readonly Block[], form: StreamedForm): string {
  const items = blockItems(blocks).map((item) => JSON.stringify(item))
  return framed(items, framings[form])
}

/** A block of an earlier state of the ledger. */
export interface FormerBlock extends Block {
  /** Whether its lines must be rendered again. */
  changed: boolean
}

/** The former blocks if none are known: one changed block with every id. */
export const noBlocks: readonly FormerBlock[] = [{ first: 0, rows: 0, sha256: '', changed: true }]

/** @param ranges what has changed since the blocks were cut: ascending and disjoint */
export function markChanged(blocks: readonly Block[], ranges: readonly EntryRange[]): FormerBlock[] {
  let next = 0
  const marked = blocks.map((block, i) => {
    const end = blocks[i + 1]?.first ?? Number.POSITIVE_INFINITY
    while (next < ranges.length && Number(ranges[next]![1]) < block.first) next++
    return { ...block, changed: next < ranges.length && Number(ranges[next]![0]) < end }
  })
  markSmall(marked)
  return marked
}

/** Marks small blocks beside changed ones: each is rendered again with the next, so that they can be joined. */
function markSmall(blocks: FormerBlock[]): void {
  for (const [i, block] of blocks.entries()) {
    const next = blocks[i + 1]
    if (!next || block.rows >= blockSizes.least) continue
    if (!block.changed && !next.changed && !blocks[i - 1]?.changed) continue
    block.changed = true
    next.changed = true
  }
}

/** The ranges of ids whose lines must be rendered again. */
export function changedRanges(blocks: readonly FormerBlock[]): EntryRange[] {
  const ranges: [from: string, to: string][] = []
  for (const [i, { first, changed }] of blocks.entries()) {
    if (!changed) continue
    const to = String((blocks[i + 1]?.first ?? Number.MAX_SAFE_INTEGER + 1) - 1)
    const last = ranges.at(-1)
    if (last && blocks[i - 1]?.changed) last[1] = to
    else ranges.push([String(first), to])
  }
  return ranges
}
