/** Parses the fields of a FEC. Each function returns undefined for a value that it does not recognise. */

/** A field in quotes, or a blank one, with the blanks around it. */
const quotedField = / *(?:"([^"]*(?:""[^"]*)*)")?[ \r]*/y

/**
 * The fields of a line without their quotes, if all but blank ones have some: then separators inside belong to a field,
 * and two quotes stand for one (RFC 4180).
 */
export function quotedFields(line: string, separator: string): string[] | undefined {
  // Nearly always.
  if (!line.includes('"')) return undefined
  const fields: string[] = []
  for (let at = 0; ; at += 1) {
    quotedField.lastIndex = at
    const [whole, text = ''] = quotedField.exec(line)!
    fields.push(text.replaceAll('""', '"'))
    at += whole.length
    if (at === line.length) return fields
    if (line[at] !== separator) return undefined
  }
}

/**
 * An exact amount in units of 10^-decimals: `1234,5` with 2 decimals is 123450n. A comma or point, a sign and leading
 * zeros are accepted; further decimals only if they are zeros, because nothing here rounds. At most 15 digits before
 * the comma: a bigint column of the database holds the sum of a few dozen such lines. It takes time with the square of
 * the length, which `charactersMax` bounds.
 */
export function parseAmount(text: string, decimals = 2): bigint | undefined {
  // Every other amount, and faster than to take it apart.
  if (text === '0,00') return 0n
  const parts = /^([+-]?)0*(\d{0,15})(?:[.,](\d*?)0*)?$/.exec(text)
  if (parts === null) return undefined
  const [, sign, whole = '', fraction = ''] = parts
  if (fraction.length > decimals || !/\d/.test(text)) return undefined
  const units = BigInt(whole + fraction.padEnd(decimals, '0'))
  return sign === '-' ? -units : units
}

/**
 * An amount with blanks between its thousands (`1 500,00`: always three digits, blanks of one kind) or a minus at its end
 * (`1,00-`) in the form that `parseAmount` takes. Any other text is returned as it is.
 */
export function plainAmount(text: string): string {
  const groups = /^([+-]?)(\d*|[1-9]\d{0,2}(?:([ \u00a0\u202f])\d{3})(?:\3\d{3})*)([.,]\d*)?(-?)$/
  const [, sign, whole = '', , fraction = '', minus] = groups.exec(text) ?? []
  return sign === undefined || (sign && minus)
    ? text
    : `${minus || sign}${whole.replace(/\D/g, '')}${fraction}`
}

/** No text has two of these forms. Days and months of one digit may be without their zero. */
const dayForms = {
  YYYYMMDD: /^(?<year>(?:19|20)\d\d)(?<month>\d\d)(?<day>\d\d)$/,
  'DD/MM/YYYY': /^(?<day>\d\d?)\/(?<month>\d\d?)\/(?<year>(?:19|20)\d\d)$/,
  'YYYY-MM-DD': /^(?<year>(?:19|20)\d\d)-(?<month>\d\d?)-(?<day>\d\d?)$/,
}
export type DayForm = keyof typeof dayForms
/** That of the standard first. */
export const dayFormNames = Object.keys(dayForms) as DayForm[]

/** `20230131` (or the same day in another form) as `2023-01-31`, if there is such a day, with its form. */
export function parseDay(text: string): { day: string; form: DayForm } | undefined {
  for (const form of dayFormNames) {
    const { year, month = '', day = '' } = dayForms[form].exec(text)?.groups ?? {}
    const written = `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`
    if (isDay(written)) return { day: written, form }
  }
}

/** Whether `YYYY-MM-DD` is a day of the calendar. */
export function isDay(text: string): boolean {
  const instant = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  return !Number.isNaN(instant) && new Date(instant).toISOString().startsWith(text)
}

/** ISO 4217 letters, and other spellings of the euro that programs write. */
export function parseCurrency(text: string): string | undefined {
  const letters = text.toUpperCase()
  if (/^(€|E|EUROS?)$/.test(letters)) return 'EUR'
  return /^[A-Z]{3}$/.test(letters) ? letters : undefined
}

/** D or C, +1 (or 1) for debit, -1 for credit. */
export function parseSide(text: string): 'debit' | 'credit' | undefined {
  if (/^(D|\+?1|\+)$/i.test(text)) return 'debit'
  return /^(C|-1?)$/i.test(text) ? 'credit' : undefined
}

/**
 * The digits of an amount as the standard writes them: a comma, a sign only if it is negative, no zeros before the
 * whole part. `text` is one that `parseAmount` takes.
 */
export function standardAmount(text: string): string {
  const [, sign, whole = '', fraction] = /^([+-]?)0*(\d*)(?:[.,](\d*))?$/.exec(text)!
  return `${sign === '-' ? '-' : ''}${whole || '0'}${fraction ? `,${fraction}` : ''}`
}
