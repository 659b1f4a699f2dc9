/**
 * Parses the fields of a FEC, and collects its problems. Each parser returns undefined for a value that it does not
 * recognise.
 */
import { printable } from '../../../packages/terminal/src/printable.ts'

/** A field in quotes or a blank field, with the blanks around it. */
const quotedField = / *(?:"([^"]*(?:""[^"]*)*)")?[ \r]*/y

/**
 * The fields of a line without their quotes, if every field that is not blank is in quotes. A separator inside quotes
 * then belongs to the field, and two quotes stand for one (RFC 4180).
 */
export function quotedFields(line: string, separator: string): string[] | undefined {
  // Most lines have no quotes.
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
 * Parses an exact amount into units of 10^-decimals: `1234,5` with 2 decimals is 123450n. A comma or point, a sign and
 * leading zeros are accepted. Further decimals must be zeros, because amounts are never rounded. At most 15 digits may
 * stand before the comma, so that a bigint column of the database holds the sum of a few dozen such lines. The time
 * grows with the square of the length, which `charactersMax` bounds.
 */
export function parseAmount(text: string, decimals = 2): bigint | undefined {
  // Half of all amounts in a ledger are this text, and a comparison is faster than parsing.
  if (text === '0,00') return 0n
  const parts = /^([+-]?)0*(\d{0,15})(?:[.,](\d*?)0*)?$/.exec(text)
  if (parts === null) return undefined
  const [, sign, whole = '', fraction = ''] = parts
  if (fraction.length > decimals || !/\d/.test(text)) return undefined
  const units = BigInt(whole + fraction.padEnd(decimals, '0'))
  return sign === '-' ? -units : units
}

/**
 * Rewrites an amount into the form that `parseAmount` takes, if it has blanks between its thousands (`1 500,00`: always
 * three digits, and blanks of one kind) or a minus at its end (`1,00-`). Any other text is returned unchanged.
 */
export function plainAmount(text: string): string {
  const groups = /^([+-]?)(\d*|[1-9]\d{0,2}(?:([ \u00a0\u202f])\d{3})(?:\3\d{3})*)([.,]\d*)?(-?)$/
  const [, sign, whole = '', , fraction = '', minus] = groups.exec(text) ?? []
  return sign === undefined || (sign && minus)
    ? text
    : `${minus || sign}${whole.replace(/\D/g, '')}${fraction}`
}

/** Each text has at most one of these forms. A day or month of one digit may lack its leading zero. */
const dayForms = {
  YYYYMMDD: /^(?<year>(?:19|20)\d\d)(?<month>\d\d)(?<day>\d\d)$/,
  'DD/MM/YYYY': /^(?<day>\d\d?)\/(?<month>\d\d?)\/(?<year>(?:19|20)\d\d)$/,
  'YYYY-MM-DD': /^(?<year>(?:19|20)\d\d)-(?<month>\d\d?)-(?<day>\d\d?)$/,
}
type DayForm = keyof typeof dayForms
/** The form of the standard comes first. */
const dayFormNames = Object.keys(dayForms) as DayForm[]

/**
 * Reads `20230131`, or the same day in another form, as `2023-01-31`, and tells the form. Undefined if there is no such
 * day.
 */
export function parseDay(text: string): { day: string; form: DayForm } | undefined {
  for (const form of dayFormNames) {
    const { year, month = '', day = '' } = dayForms[form].exec(text)?.groups ?? {}
    const written = `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`
    if (isDay(written)) return { day: written, form }
  }
}

/** Whether `YYYY-MM-DD` is a day that exists. */
export function isDay(text: string): boolean {
  const instant = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  return !Number.isNaN(instant) && new Date(instant).toISOString().startsWith(text)
}

/** Accepts the letters of ISO 4217, and other spellings of the euro that programs write. */
export function parseCurrency(text: string): string | undefined {
  const letters = text.toUpperCase()
  if (/^(€|E|EUROS?)$/.test(letters)) return 'EUR'
  return /^[A-Z]{3}$/.test(letters) ? letters : undefined
}

/** Accepts D, 1, +1 or + for debit, and C, -1 or - for credit. */
export function parseSide(text: string): 'debit' | 'credit' | undefined {
  if (/^(D|\+?1|\+)$/i.test(text)) return 'debit'
  return /^(C|-1?)$/i.test(text) ? 'credit' : undefined
}

/**
 * Writes an amount as the standard does: with a comma, with a sign only if it is negative, and without zeros before the
 * whole part.
 * @param text an amount that `parseAmount` takes
 */
export function standardAmount(text: string): string {
  const [, sign, whole = '', fraction] = /^([+-]?)0*(\d*)(?:[.,](\d*))?$/.exec(text)!
  return `${sign === '-' ? '-' : ''}${whole || '0'}${fraction ? `,${fraction}` : ''}`
}

/**
 * Reads one column of days. Each day may have its own form; the form of most days is the form of the column
 * (docs/spec/imports.md#format). It is known only at the end of the file: if the first day decided, one odd day would
 * make all others problems. A time after a day is dropped, and counted.
 */

/** A day, then a time with or without seconds, fractions of a second and a time zone. */
const dayAndTime = /^(\S{8,10})[ T]\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?$/

const linesShownMax = 5

export class DayColumn {
  /**
   * For each text: the day as YYYY-MM-DD and its form, both undefined if there is no such day; the number of lines that
   * have it; and the first of these lines. Also serves as a cache: a ledger has a few hundred days in millions of
   * fields.
   */
  readonly #days = new Map<string, { day?: string; form?: DayForm; count: number; lines: number[] }>()
  #invalid = 0
  droppedTimes = 0

  /** The day as YYYY-MM-DD; undefined if the text is not a day, which `problems` then reports. */
  read(text: string, line: number): string | undefined {
    const known = this.#days.get(text)
    if (known !== undefined) {
      known.count += 1
      if (known.count <= linesShownMax) known.lines.push(line)
      return known.day
    }
    const apart = text.length > 10 ? dayAndTime.exec(text) : null
    if (apart !== null) {
      const day = this.read(apart[1]!, line)
      if (day !== undefined) this.droppedTimes += 1
      return day
    }
    const parsed = parseDay(text)
    if (parsed === undefined) this.#invalid += 1
    if (parsed !== undefined || this.#invalid <= problemsMax)
      this.#days.set(text, { ...parsed, count: 1, lines: [line] })
    return parsed?.day
  }

  /** The number of days written with a day or month of one digit. */
  get shortDays(): number {
    return this.#days
      .entries()
      .reduce(
        (sum, [text, { form, count }]) => sum + (form !== 'YYYYMMDD' && text.length < 10 ? count : 0),
        0,
      )
  }

  /** Texts that are not a day, and days in another form than most days: each once, with its first line. */
  problems(): Omit<FecProblem, 'column'>[] {
    const counts = new Map<DayForm, number>(dayFormNames.map((form) => [form, 0]))
    for (const { form, count } of this.#days.values())
      if (form !== undefined) counts.set(form, counts.get(form)! + count)
    const most = Math.max(...counts.values())
    const expected = dayFormNames.find((form) => counts.get(form) === most)!
    const all = counts.values().reduce((sum, count) => sum + count)
    return [...this.#days].flatMap(([value, { form, count, lines }]) => {
      if (form === expected) return []
      const message =
        form === undefined
          ? `a day of the calendar written ${expected} is expected`
          : `a day written ${expected} is expected, as ${most} of the ${all} days of this column are`
      return [{ line: lines[0]!, value, message: message + alsoIn(lines.slice(1), count - lines.length) }]
    })
  }
}

function alsoIn(lines: number[], more: number): string {
  if (lines.length === 0) return ''
  return `; also in line${lines.length > 1 ? 's' : ''} ${lines.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** Whether the text means "no day": programs that pad with zeros write such texts, some with a time. */
export function isNoDay(text: string): boolean {
  return /^(?:0*|0?0\/0?0\/0000|0000-0?0-0?0)(?:[ T][0:.]+)?$/.test(text)
}

/** A problem of a FEC, for the author of the file. */
interface FecProblem {
  /** 1-based, as editors count: the header is line 1. */
  line: number
  /** The column as the regulation names it, or one of `line`, `header`, `file` and `total`. */
  column: string
  /** The value in the file without padding; a long value is cut. */
  value: string
  /** What is expected instead. */
  message: string
}

/** The check stops at this many problems: enough to see a pattern, few enough to read. */
export const problemsMax = 20

export class FecError extends Error {
  readonly problems: readonly FecProblem[]

  constructor(problems: readonly FecProblem[]) {
    const lines = problems.map(
      ({ line, column, value, message }) =>
        `  line ${line}, ${column}${value && ` "${printable(value)}"`}: ${message}`,
    )
    const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`
    const more = problems.length >= problemsMax ? ', and there may be more' : ''
    super(`The file was not imported: ${count}${more}\n${lines.join('\n')}`)
    this.name = 'FecError'
    this.problems = problems
  }
}

const valueCharactersMax = 60

/** Collects the problems of one file, so that many are reported at once. */
export class FecProblems {
  readonly #found: FecProblem[] = []

  /** @throws {FecError} once there are `problemsMax` problems */
  add(line: number, column: string, value: string, message: string): void {
    const shown = value.length > valueCharactersMax ? `${value.slice(0, valueCharactersMax)}...` : value
    this.#found.push({ line, column, value: shown, message })
    if (this.#found.length >= problemsMax) this.throwIfAny()
  }

  /** @throws {FecError} with all problems found so far, in the order of the file */
  throwIfAny(): void {
    if (this.#found.length === 0) return
    throw new FecError(this.#found.toSorted((one, other) => one.line - other.line))
  }
}
