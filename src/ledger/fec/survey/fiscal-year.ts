/** Determines the fiscal year of a FEC: from options, its file name, or the dates of its lines. */
import { isDay } from '../../../formats/fec/fields.ts'
import type { FecLine } from '../../../formats/fec/parse.ts'
import type { Period } from '../../../formats/rows.ts'
import { isOpening, journalTypeByName } from './journals.ts'

/**
 * Assumes twelve months if only one end of the year is known.
 * @param namedEnd last day according to the file name
 * @returns undefined if nothing determines the year
 * @throws {Error} naming the option that is wrong
 */
export function fiscalYear(
  namedEnd: string | undefined,
  options: { [Option in keyof Period]?: string | undefined },
): Period | undefined {
  for (const option of ['start', 'end'] as const)
    if (options[option] !== undefined && !isDay(options[option]))
      throw new Error(`--${option} must be a day such as 2023-12-31, not "${options[option]}"`)
  const end = options.end ?? namedEnd ?? (options.start && twelveMonthsFrom(options.start))
  if (end === undefined) return undefined
  const start = options.start ?? shifted(shifted(end, 0, 1), -12, 0)
  if (start >= end) throw new Error(`The fiscal year must end after it starts: ${start} to ${end} does not`)
  if (end >= shifted(start, 24, 0))
    throw new Error(`${start} to ${end} is more than 24 months, the most a year may have`)
  return { start, end }
}

/** The first and last day of a file's lines. Lines of opening journals are left out, as they may be older. */
export class LineDays {
  /** Whether a journal is an opening journal, by its code, so that each label is read only once. */
  readonly #openings = new Map<string, boolean>()
  readonly #year = { first: '9999-12-31', last: '' }
  readonly #all = { first: '9999-12-31', last: '' }

  add(line: FecLine): void {
    let opening = this.#openings.get(line.journalCode)
    if (opening === undefined) {
      opening = isOpening(journalTypeByName(line.journalCode, line.journalName))
      this.#openings.set(line.journalCode, opening)
    }
    for (const days of opening ? [this.#all] : [this.#all, this.#year]) {
      if (line.date < days.first) days.first = line.date
      if (line.date > days.last) days.last = line.date
    }
  }

  /** The first and the last day, for messages. */
  span(): string {
    const { first, last } = this.#year.last === '' ? this.#all : this.#year
    return `${first} to ${last}`
  }

  /**
   * Returns the fiscal year if the dates span twelve months: no other year of twelve months contains them all.
   * @throws {Error} with options to give, if the dates are ambiguous
   */
  fiscalYear(): Period {
    const { first, last } = this.#year.last === '' ? this.#all : this.#year
    const start = `${first.slice(0, 7)}-01`
    const months = monthNumber(last) - monthNumber(start) + 1
    if (months === 12) return { start, end: twelveMonthsFrom(start) }
    const found =
      'Neither the file name (such as 123456789FEC20231231.txt) nor its lines determine the fiscal year: ' +
      `they are dated ${this.span()}`
    if (months > 24)
      throw new Error(`${found}, more than the 24 months that a year may have. Import a file for each year`)
    const isCalendarYear = first.slice(0, 4) === last.slice(0, 4)
    const likely = isCalendarYear ? `${first.slice(0, 4)}-01-01` : start
    const end = months > 12 ? shifted(`${last.slice(0, 7)}-01`, 1, -1) : twelveMonthsFrom(likely)
    throw new Error(`${found}. Give its first and last day, for instance --start ${likely} --end ${end}`)
  }
}

function monthNumber(day: string): number {
  return Number(day.slice(0, 4)) * 12 + Number(day.slice(5, 7))
}

/** The last day of the twelve months that begin on the day `start`. */
function twelveMonthsFrom(start: string): string {
  return shifted(start, 12, -1)
}

function shifted(day: string, months: number, days: number): string {
  const date = new Date(`${day}T00:00:00Z`)
  date.setUTCMonth(date.getUTCMonth() + months)
  date.setUTCDate(date.getUTCDate() + days)
  return date.toISOString().slice(0, 10)
}
