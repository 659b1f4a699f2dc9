/** Ranges of entry ids. */
import type { EntryRange } from '../changes.ts'

export const lastEntryId = '9007199254740991'

/** Whether the ranges are in ascending order and do not overlap. */
export function areAscending(ranges: readonly EntryRange[]): boolean {
  let last = -1
  return ranges.every(([from, to]) => {
    const isNext = Number(from) > last && Number(from) <= Number(to) && Number(to) <= Number(lastEntryId)
    last = Number(to)
    return isNext
  })
}

/** Whether every wanted entry lies in the given ranges. Both lists ascend. Given ranges that touch count as one range. */
export const areWithin = (wanted: readonly EntryRange[], given: readonly EntryRange[]): boolean =>
  String(unionOf(wanted, given)) === String(unionOf([], given))

/** The entries that are in both lists of ranges. Both lists ascend. */
export function commonOf(one: readonly EntryRange[], other: readonly EntryRange[]): EntryRange[] {
  const common: EntryRange[] = []
  for (let here = 0, there = 0; here < one.length && there < other.length; ) {
    const [ours, theirs] = [one[here]!, other[there]!]
    const from = Math.max(Number(ours[0]), Number(theirs[0]))
    const to = Math.min(Number(ours[1]), Number(theirs[1]))
    if (from <= to) common.push([String(from), String(to)])
    if (to === Number(ours[1])) here += 1
    else there += 1
  }
  return common
}

/** The entries that are in either list of ranges, as ascending ranges. */
export function unionOf(one: readonly EntryRange[], other: readonly EntryRange[]): EntryRange[] {
  const union: EntryRange[] = []
  for (const [from, to] of [...one, ...other].sort(([a], [b]) => Number(a) - Number(b))) {
    const last = union.at(-1)
    if (!last || Number(from) > Number(last[1]) + 1) union.push([from, to])
    else if (Number(to) > Number(last[1])) last[1] = to
  }
  return union
}

/**
 * The parts of the ranges from this entry on, as at most `count` ranges. If there are more, the last range covers all
 * that remain, and the entries between them.
 */
export function rangesFrom(ranges: readonly EntryRange[], entry: number, count: number): EntryRange[] {
  const rest = ranges.flatMap(([from, to]): EntryRange[] => {
    if (Number(to) < entry) return []
    return [[Number(from) < entry ? String(entry) : from, to]]
  })
  const [first] = rest.slice(count - 1)
  return first ? [...rest.slice(0, count - 1), [first[0], rest.at(-1)![1]]] : rest
}
