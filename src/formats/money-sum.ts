import { Buffer } from 'node:buffer'
import { ascii } from './ascii.ts'

const { minus, zero } = ascii

/** So many digits are below 2^50: a number holds them, and a few of them added to 2^52, without rounding. */
const digitsExact = 15
const spillAt = 2 ** 52

/**
 * An exact sum of amounts in minor units, as COPY prints them. Whole numbers below 2^53 are exact in a number, which
 * takes 4 ns per amount where a bigint takes 80; what outgrows that is moved to a bigint.
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
