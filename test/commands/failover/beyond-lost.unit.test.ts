import { expect, test } from 'vitest'
import { beyondLost } from '../../../src/commands/failover/beyond-lost.ts'

const at = (text: string) => Date.parse(text)

test('ids go on from two million for each second since 2026', () => {
  expect(beyondLost(5_336_556n, at('2026-01-02T00:00:00Z'))).toBe(172_800_000_000n)
  expect(beyondLost(0n, at('2027-01-01T00:00:00Z'))).toBe(63_072_000_000_000n)
})

test('two failovers from one state never lead to the same ids', () => {
  const first = beyondLost(1000n, at('2027-01-01T00:00:00Z'))
  // The first one gave out a million ids in each second of its hour.
  const given = first + 3_600_000_000n
  expect(beyondLost(1000n, at('2027-01-01T01:00:00Z'))).toBeGreaterThan(given)
})

test('ids that have come further go on after four billion more', () => {
  const now = at('2026-01-01T00:01:00Z')
  expect(beyondLost(8_000_000_000_000n, now)).toBe(8_004_000_000_000n)
  expect(beyondLost(0n, at('2020-01-01T00:00:00Z'))).toBe(4_000_000_000n)
})

test('the sequence of ids stays at multiples of a thousand', () => {
  expect(beyondLost(1_234_000n, at('2026-11-23T01:02:03.456Z')) % 1000n).toBe(0n)
})

test('ids stay below 2^53 for two million failovers', () => {
  const now = at('2026-01-01T00:00:00Z')
  const step = beyondLost(0n, now)
  const last = beyondLost(1_999_999n * step, now)
  expect([last, last < 2n ** 53n]).toEqual([2_000_000n * step, true])
  expect(() => beyondLost(2n ** 53n - 5_000_000_000n, now)).toThrow('too few ids are left below 2^53')
})

test('a clock that is far ahead is refused', () => {
  expect(() => beyondLost(0n, at('2106-02-07T00:00:00Z'))).toThrow(
    'The clock of the database server says 2106-02-07T00:00:00.000Z: set it, and try again.',
  )
})
