/** Amounts and rates, which are whole numbers of their smallest unit, as decimal numbers. Never through a double. */
import { ascii } from './ascii.ts'

const { dot, minus, zero } = ascii

/** Cents as a number with two decimals: 1234n is 12.34. @param mark 12,34 where it is a comma */
export function inUnits(amount: bigint, mark: '.' | ',' = '.'): string {
  const { sign, whole, fraction } = partsOf(String(amount), 2)
  return `${sign}${whole}${mark}${fraction}`
}

/** What TypeScript's library does not know yet: a number printed from digits. */
const exact = JSON as unknown as { rawJSON(text: string): unknown }

/**
 * For JSON.stringify: a decimal number from the digits of a whole number of units, `26444` at two decimals as 264.44.
 * @param units digits, with a minus where negative
 */
export function decimal(units: string, decimals: number): unknown {
  const { sign, whole, fraction } = partsOf(units, decimals)
  const shown = fraction.replace(/0+$/, '')
  return exact.rawJSON(`${sign}${whole}${shown === '' ? '' : `.${shown}`}`)
}

/** @param units digits, with a minus where negative */
function partsOf(units: string, decimals: number): { sign: string; whole: string; fraction: string } {
  const sign = units.startsWith('-') ? '-' : ''
  const digits = units.slice(sign.length).padStart(decimals + 1, '0')
  return { sign, whole: digits.slice(0, -decimals), fraction: digits.slice(-decimals) }
}

/**
 * A decimal number from the digits of a whole number of units, exact at any length: 26444 at two decimals is
 * 264.44, 10 is 0.1, 10000 is 100.
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
