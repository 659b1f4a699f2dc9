/** Numbers that go through JSON with their digits, not as doubles. */

/** What TypeScript's library does not know yet: the digits of a parsed number, and a number printed from digits. */
interface ExactJson {
  parse(text: string, revive: (key: string, value: unknown, context: { source: string }) => unknown): unknown
  rawJSON(text: string): unknown
}

const exact = JSON as unknown as ExactJson

/** A partner's numbers keep their digits: as a double, 9007199254740993 would come back as …992, and 0.10 as 0.1. */
export function parseExactly(text: string): unknown {
  return exact.parse(text, (_key, value, { source }) =>
    typeof value === 'number' ? exact.rawJSON(source) : value,
  )
}

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
