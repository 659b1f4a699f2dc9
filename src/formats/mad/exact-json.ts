/** Decimal numbers that go through JSON.stringify with their digits, not as doubles. */

/** What TypeScript's library does not know yet: a number printed from digits. */
const exact = JSON as unknown as { rawJSON(text: string): unknown }

/**
 * For JSON.stringify: a decimal number from the digits of a whole number of units, `26444` at two decimals as 264.44.
 * @param units digits, with a minus where negative
 */
export function decimal(units: string, decimals: number): unknown {
  const sign = units.startsWith('-') ? '-' : ''
  const digits = units.slice(sign.length).padStart(decimals + 1, '0')
  const fraction = digits.slice(-decimals).replace(/0+$/, '')
  return exact.rawJSON(`${sign}${digits.slice(0, -decimals)}${fraction === '' ? '' : `.${fraction}`}`)
}
