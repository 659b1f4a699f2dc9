/**
 * Amounts of an entry in its own currency. They are computed from the amounts in euro and the rate, because the
 * database stores nothing else. If each amount were rounded separately, an entry that balances in euro could be a cent
 * out in dollars, and shares could be a cent out from their line. Therefore running sums are converted, and an amount
 * is the difference between two converted sums. It differs by at most a cent from its own conversion, and sums that are
 * equal in euro stay equal. Amounts are in minor units.
 *
 * In a folder of 600,000 movements with 443,000 shares, separate rounding left 1,352 lines a cent away from the sum of
 * their shares.
 */

/** @param rate millionths of a euro per unit of the currency; more than 0 */
export function foreignAmounts(rate: bigint) {
  const ofEntry = runningConversion(rate, million)
  /** The amount of the last movement, in euro and converted. */
  let movement = { euro: 0n, converted: 0n }
  /** The axis of the last share, and the conversion of its shares. */
  let shared = { axis: 0, convert: ofEntry }
  return {
    movement(euro: bigint, isDebit: boolean): bigint {
      movement = { euro, converted: isDebit ? ofEntry(euro) : -ofEntry(-euro) }
      shared = { axis: 0, convert: ofEntry }
      return movement.converted
    },

    /** Converts a share of the last movement. Shares of one axis are adjacent. @param axis its rank, from 1 */
    share(euro: bigint, axis: number): bigint {
      if (axis !== shared.axis) {
        const [from, to] = movement.euro === 0n ? [rate, million] : [movement.euro, movement.converted]
        shared = { axis, convert: runningConversion(from, to) }
      }
      return shared.convert(euro)
    },
  }
}

const million = 1_000_000n

/** Converts the next amount of a running sum. */
type Conversion = (amount: bigint) => bigint

/** Converts amounts in the proportion of `to` to `from`. */
function runningConversion(from: bigint, to: bigint): Conversion {
  const sign = from < 0n ? -1n : 1n
  // Multiplied here once rather than for each movement: 70 ns instead of 430.
  const [factor, divisor] = [sign * to, sign * from]
  let sum = 0n
  let converted = 0n
  return (amount) => {
    const before = converted
    sum += amount
    converted = rounded(sum * factor, divisor)
    return converted - before
  }
}

/** The nearest whole quotient; halves are rounded away from zero. */
function rounded(dividend: bigint, divisor: bigint): bigint {
  return (2n * dividend + (dividend < 0n ? -divisor : divisor)) / (2n * divisor)
}
