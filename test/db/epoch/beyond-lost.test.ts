import { expect, test } from 'vitest'
import { forTests } from '../../support/for-tests.ts'
import { connect, createTestDatabase } from '../../support/servers/database.ts'

const database = forTests(createTestDatabase)
const owner = forTests(() => connect(database.ownerUrl))

async function beyondLost(last: string, at: string): Promise<bigint> {
  const { rows } = await owner.query('select beyond_lost($1, $2) as beyond', [last, at])
  return BigInt(rows[0].beyond)
}

test.each([
  ['at two million for each second since 2026', '5336556', '2027-01-01T00:00:00Z', 63_072_000_000_000n],
  ['four billion above the last id', '8000000000000', '2026-01-01T00:01:00Z', 8_004_000_000_000n],
  ['four billion above the last id even if the clock is behind', '0', '2020-01-01T00:00:00Z', 4_000_000_000n],
])('new ids begin %s, plus a random distance below 2^40', async (_, last, at, least) => {
  const found = await Array.fromAsync({ length: 20 }, () => beyondLost(last, at))
  const distances = found.map((beyond) => beyond - least)
  expect(distances.filter((distance) => distance < 0n || distance >= 2n ** 40n)).toEqual([])
  expect(new Set(distances).size).toBe(20)
  expect(Math.max(...distances.map(Number))).toBeGreaterThan(1e10)
})

test('the sequence of ids stays at a multiple of a thousand', async () => {
  expect((await beyondLost('1234000', '2026-11-23T01:02:03.456Z')) % 1000n).toBe(0n)
})

test('ids stay below 2^53, and a clock far in the future is refused', async () => {
  const last = String(2n ** 53n - 5_000_000_000n)
  await expect(beyondLost(last, '2026-01-01T00:00:00Z')).rejects.toThrow('too few ids are left below 2^53')
  await expect(beyondLost('0', '2106-02-07T00:00:00Z')).rejects.toThrow(
    'The clock of the database server says',
  )
})
