/**
 * Parses the fields of a FEC, each function with undefined for a value that it does not recognise, and collects
 * problems.
 */
import { printable } from '../../../packages/terminal/src/printable.ts'

/** A field in quotes, or a blank one, with the blanks around it. */
const quotedField = / *(?:"([^"]*(?:""[^"]*)*)")?[ \r]*/y

/**
 * The fields of a line without their quotes, if all but blank ones have some: then separators inside belong to a field,
 * and two quotes stand for one (RFC 4180).
 */
export function quotedFields(line: string, separator: string): string[] | undefined {
  // The usual case.
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
type DayForm = keyof typeof dayForms
/** The form of the standard comes first. */
const dayFormNames = Object.keys(dayForms) as DayForm[]

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

/**
 * Reads one column of days. Each tells its own form, and that of most is the form of the column
 * (docs/spec/imports.md#format). Which one that is shows only at the end of the file: judged by the first day, one odd
 * day would condemn all others. A time after a day is dropped, and counted.
 */

/** The day, and after it a time with or without seconds, their fractions and a time zone. */
const dayAndTime = /^(\S{8,10})[ T]\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?$/

const linesShownMax = 5

export class DayColumn {
  /**
   * By text: the day YYYY-MM-DD, undefined as its form is if there is no such day; how many lines have it, and the first
   * of them. Also a cache: a ledger has a few hundred days in millions of fields.
   */
  readonly #days = new Map<string, { day?: string; form?: DayForm; count: number; lines: number[] }>()
  #invalid = 0
  droppedTimes = 0

  /** The day as YYYY-MM-DD; undefined if it is none, which is then among the problems. */
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

  /** How many days, or their months, have one digit. */
  get shortDays(): number {
    return this.#days
      .entries()
      .reduce(
        (sum, [text, { form, count }]) => sum + (form !== 'YYYYMMDD' && text.length < 10 ? count : 0),
        0,
      )
  }

  /** Texts that are no day, and days in another form than most: each once, with its first line. */
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

/** Programs that pad with zeros write these if there is no day, some of them with a time. */
export function isNoDay(text: string): boolean {
  return /^(?:0*|0?0\/0?0\/0000|0000-0?0-0?0)(?:[ T][0:.]+)?$/.test(text)
}

/** A problem of a FEC, described so that its author can find and correct it. */
interface FecProblem {
  /** 1-based, as editors count: the header is line 1. */
  line: number
  /** The column as the regulation names it, or `line`, `header`, `file`, `total`. */
  column: string
  /** The value in the file, without padding; long values are cut. */
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

  /** @throws {FecError} when there are `problemsMax` */
  add(line: number, column: string, value: string, message: string): void {
    const shown = value.length > valueCharactersMax ? `${value.slice(0, valueCharactersMax)}...` : value
    this.#found.push({ line, column, value: shown, message })
    if (this.#found.length >= problemsMax) this.throwIfAny()
  }

  get any(): boolean {
    return this.#found.length > 0
  }

  /** @throws {FecError} with all problems found so far, in the order of the file */
  throwIfAny(): void {
    if (this.any) throw new FecError(this.#found.toSorted((one, other) => one.line - other.line))
  }
}
