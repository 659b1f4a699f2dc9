import { randomInt } from 'node:crypto'
import { expect, test } from 'vitest'
import { longestAscent } from '../../src/ledger/replace/replace.ts'

/** The longest ascent by trying all of them. */
function longest(values: number[]): number {
  const best = values.map(() => 1)
  for (let at = 0; at < values.length; at += 1)
    for (let before = 0; before < at; before += 1)
      if (values[before]! < values[at]!) best[at] = Math.max(best[at]!, best[before]! + 1)
  return Math.max(0, ...best)
}

test('the result ascends, and no longer ascent exists', () => {
  for (let round = 0; round < 500; round += 1) {
    const length = randomInt(12)
    const values = Array.from({ length }, (_, at) => ({ at, rank: randomInt(1_000_000) }))
      .toSorted((one, other) => one.rank - other.rank)
      .map(({ at }) => at)
    const indexes = [...longestAscent(Int32Array.from(values))]
    const found = indexes.map((index) => values[index]!)
    expect(indexes, values.join()).toEqual(indexes.toSorted((one, other) => one - other))
    expect(found, values.join()).toEqual([...new Set(found)].toSorted((one, other) => one - other))
    expect(found, values.join()).toHaveLength(longest(values))
  }
})
