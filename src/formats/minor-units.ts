/**
 * Writes amounts and rates, which are whole numbers of their smallest unit, as decimal numbers, never through a double.
 */
import { ascii } from './ascii.ts'

const { comma, dot, minus, zero } = ascii

/** Of a bigint of PostgreSQL; the least is its negative. */
export const unitsMax = 2n ** 63n - 1n

/** Cents as a number with two decimals: 1234n is 12.34. @param mark decimal separator; with a comma 12,34 */
export function inUnits(amount: bigint, mark: '.' | ',' = '.'): string {
  const { sign, whole, fraction } = partsOf(String(amount), 2)
  return `${sign}${whole}${mark}${fraction}`
}

/** `JSON.rawJSON`, which prints a number from its digits; TypeScript's library does not declare it yet. */
const exact = JSON as unknown as { rawJSON(text: string): unknown }

/** A number of JSON, kept as its text: no double can hold every amount. */
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
 * A decimal number, from the digits of a whole number of units: `26444` with two decimals is 264.44.
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
 * Writes a decimal number from the digits of a whole number of units, exact at any length. With two decimals, 26444 is
 * 264.44, 10 is 0.1 and 10000 is 100.
 */
export function writeDecimal(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
  decimals: number,
): number {
  if (bytes[start] === minus) {
    out[at++] = minus
    start++
  }
  const point = end - decimals
  let last = end
  while (last > point && last > start && bytes[last - 1] === zero) last--
  if (point <= start) out[at++] = zero
  for (let i = start; i < point; i++) out[at++] = bytes[i]!
  if (last > point && last > start) {
    out[at++] = dot
    for (let i = point; i < start; i++) out[at++] = zero
    for (let i = Math.max(point, start); i < last; i++) out[at++] = bytes[i]!
  }
  return at
}

const centDecimals = 2

/** Writes the digits of cents with two decimals: 5 is `0,05`. @param mark decimal separator */
export function writeCents(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
  mark: number = comma,
): number {
  if (bytes[start] === minus) {
    out[at++] = minus
    start++
  }
  for (let position = Math.max(end - start, centDecimals + 1); position > 0; position--) {
    if (position === centDecimals) out[at++] = mark
    out[at++] = end - position >= start ? bytes[end - position]! : zero
  }
  return at
}
