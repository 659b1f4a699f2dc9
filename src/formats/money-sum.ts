import { Buffer } from 'node:buffer'
import { ascii } from './ascii.ts'

const { minus, zero } = ascii

/** Amounts of up to 15 digits are below 2^50: a double holds them, and the sum of one and 2^52, without rounding. */
const digitsExact = 15
const spillAt = 2 ** 52

/**
 * An exact sum of amounts in minor units, as COPY prints them. A double is exact for whole numbers below 2^53 and takes
 * 4 ns per amount; a bigint takes 80. Larger sums move to a bigint.
 */
export class MoneySum {
  #spilled = 0n
  #units = 0

  add(bytes: Uint8Array, start: number, end: number): void {
    if (end - start > digitsExact) {
      this.#spilled += BigInt(Buffer.from(bytes.subarray(start, end)).toString('latin1'))
      return
    }
    let units = 0
    for (let i = bytes[start] === minus ? start + 1 : start; i < end; i++)
      units = units * 10 + (bytes[i]! - zero)
    this.#units += bytes[start] === minus ? -units : units
    if (this.#units >= spillAt || this.#units <= -spillAt) {
      this.#spilled += BigInt(this.#units)
      this.#units = 0
    }
  }

  get total(): bigint {
    return this.#spilled + BigInt(this.#units)
  }
}
