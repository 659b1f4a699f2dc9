/** Which blocks of an earlier state of the ledger still hold. Pure. */
import type { EntryRange } from '../../ledger/changes/entry-ranges.ts'
import type { EntrySegment } from '../read/entry-segments.ts'
import type { Block } from './block.ts'
import { blockSizes } from './block-sizes.ts'

export interface FormerBlock extends Block {
  /** Its lines are to be rendered again. */
  changed: boolean
}

/** Where no blocks are known. */
export const noBlocks: readonly FormerBlock[] = [{ first: 0, rows: 0, sha256: '', changed: true }]

/** @param ranges what has changed since: ascending and disjoint */
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

/** A small block beside a changed one is rendered again with the next, so that they can be joined. */
function markSmall(blocks: FormerBlock[]): void {
  for (const [i, block] of blocks.entries()) {
    const next = blocks[i + 1]
    if (!next || block.rows >= blockSizes.least) continue
    if (!block.changed && !next.changed && !blocks[i - 1]?.changed) continue
    block.changed = true
    next.changed = true
  }
}

/** The ranges of ids whose lines are to be rendered again. */
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

/** The same, as segments of the exercice. */
export function changedSegments(blocks: readonly FormerBlock[], exerciceId: string): EntrySegment[] {
  return changedRanges(blocks).map(([least, greatest]) => ({
    exerciceIds: [exerciceId],
    least,
    greatest,
    dense: true,
  }))
}
