/**
 * Writes amounts and rates as decimal numbers, from whole numbers of their smallest unit. The result is exact at any
 * size.
 */

import { Buffer } from 'node:buffer'
import { ascii } from './ascii.ts'
import type { Rows } from './text-bytes.ts'

const { minus, zero } = ascii

/** The highest bigint of PostgreSQL. The lowest amount that is accepted is its negative. */
export const unitsMax = 2n ** 63n - 1n

/**
 * Writes a whole number of units with all its decimals: 1234n is 12.34, or 12,34 with a comma.
 * @param mark decimal separator
 */
export function inUnits(amount: bigint, mark: '.' | ',' = '.', decimals = 2): string {
  const { sign, whole, fraction } = partsOf(String(amount), decimals)
  return `${sign}${whole}${mark}${fraction}`
}

/** `JSON.rawJSON`, which prints a number from its digits. TypeScript's library does not declare it yet. */
const exact = JSON as unknown as { rawJSON(text: string): unknown }

/** A JSON number that is kept as its text, because no double can hold every amount. */
export class JsonNumber {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  toJSON(): unknown {
    return exact.rawJSON(this.text)
  }
}

/**
 * Makes a decimal number from a whole number of units: `26444` with two decimals is 264.44.
 * @param units digits, with a minus if negative
 */
export function decimal(units: string, decimals: number): JsonNumber {
  const { sign, whole, fraction } = partsOf(units, decimals)
  const shown = fraction.replace(/0+$/, '')
  return new JsonNumber(`${sign}${whole}${shown === '' ? '' : `.${shown}`}`)
}

/** @param units digits, with a minus if negative */
function partsOf(units: string, decimals: number): { sign: string; whole: string; fraction: string } {
  const sign = units.startsWith('-') ? '-' : ''
  const digits = units.slice(sign.length).padStart(decimals + 1, '0')
  return { sign, whole: digits.slice(0, -decimals), fraction: digits.slice(-decimals) }
}

/**
 * Amounts of up to 15 digits are below 2^50. A double holds such an amount, and its sum with 2^52, without rounding.
 */
const digitsExact = 15
const spillAt = 2 ** 52

/**
 * An exact sum of amounts in minor units, read from the digits that COPY prints. A double is exact for whole numbers
 * below 2^53 and takes 4 ns per amount; a bigint takes 80. Larger sums move to a bigint.
 */
export class MoneySum {
  #spilled = 0n
  #units = 0

  add(rows: Rows, field: number): void {
    const { bytes } = rows
    const start = rows.start(field)
    const end = rows.end(field)
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
