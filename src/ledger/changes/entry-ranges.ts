/** Ranges of entry ids. */
import { idLiteral } from '../../db/literal.ts'

/** The first and last id, in decimal digits. Ranges in a list ascend and do not overlap. */
export type EntryRange = readonly [from: string, to: string]

/** The range of all ids. */
export const everyEntry: readonly EntryRange[] = [['0', '9007199254740991']]

/** Reads the ranges of an int8multirange in the form that PostgreSQL writes: `{[1,2),[5,9)}`. */
export function readMultirange(text: string): EntryRange[] {
  return Array.from(text.matchAll(/\[(\d+),(\d+)\)/g), ([, from = '', to = '']) => [
    from,
    String(BigInt(to) - 1n),
  ])
}

/** Writes the ranges as a literal. PostgreSQL orders them, and joins those that overlap or meet. */
export function multirangeLiteral(ranges: readonly EntryRange[]): string {
  return `'{${ranges.map(([from, to]) => `[${idLiteral(from)},${idLiteral(to)}]`).join(',')}}'::int8multirange`
}

/** Covers the same ids with ranges that ascend and neither overlap nor meet. */
export function mergedRanges(ranges: readonly EntryRange[]): EntryRange[] {
  const ascending = ranges.toSorted(([a], [b]) => (BigInt(a) < BigInt(b) ? -1 : 1))
  const disjoint: [from: string, to: string][] = []
  for (const [from, to] of ascending) {
    const last = disjoint.at(-1)
    if (!last || BigInt(from) > BigInt(last[1]) + 1n) disjoint.push([from, to])
    else if (BigInt(to) > BigInt(last[1])) last[1] = to
  }
  return disjoint
}
