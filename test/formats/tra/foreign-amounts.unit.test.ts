import { expect, test } from 'vitest'
import { foreignAmounts } from '../../../src/formats/tra/foreign-amounts.ts'

const rates = [873_417n, 1_083_200n, 1n, 6_559_57n, 9_999_999n]
/** Converts one amount separately, to the nearest cent. */
const alone = (euro: bigint, rate: bigint) => {
  const magnitude = ((euro < 0n ? -euro : euro) * 2_000_000n + rate) / (2n * rate)
  return euro < 0n ? -magnitude : magnitude
}
const isNear = (one: bigint, other: bigint) => one - other <= 1n && other - one <= 1n

test('entries that balance in euro also balance in their currency, each amount within a cent of its exact value', () => {
  let different = 0
  for (const rate of rates)
    for (let i = 1n; i < 300n; i++) {
      const [net, vat] = [997n * i, 199n * i + 7n]
      const amounts = foreignAmounts(rate)
      const booked = [net, vat, net + vat].map((euro, k) => amounts.movement(euro, k < 2))
      expect(booked[0]! + booked[1]!).toBe(booked[2])
      for (const [k, euro] of [net, vat, net + vat].entries())
        expect(isNear(booked[k]!, alone(euro, rate))).toBe(true)
      if (alone(net, rate) + alone(vat, rate) !== alone(net + vat, rate)) different++
    }
  // If amounts were converted separately, hundreds of entries would not balance.
  expect(different).toBeGreaterThan(200)
})

test('the shares of a line add up to the line on each axis, with any signs', () => {
  for (const rate of rates)
    for (const total of [10_001n, -10_001n, 1n, 0n, 999_999_999_999n]) {
      const amounts = foreignAmounts(rate)
      amounts.movement(333n, false)
      const line = amounts.movement(total, total > 5n)
      for (const axis of [1, 2, 5]) {
        const parts = [total / 3n, -5n, total - total / 3n + 5n]
        const shares = parts.map((part) => amounts.share(part, axis))
        expect(shares.reduce((sum, share) => sum + share)).toBe(line)
      }
    }
})
