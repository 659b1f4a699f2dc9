/** What the name of a FEC says, and the fiscal year that follows from it and from options. */
import { basename } from 'node:path'
import { isDay, parseDay } from '../../formats/fec/fields.ts'
import type { Period } from './survey.ts'

export interface FecFileName {
  /** Without folder and ending. */
  stem: string
  /** The digits before `FEC`: a SIREN where the program keeps to the regulation. */
  digits: string | undefined
  /** Nine digits of which one is not zero. */
  siren: string | undefined
  /** Last day of the fiscal year, `YYYY-MM-DD`. */
  end: string | undefined
}

/** The regulation asks for `<SIREN>FEC<last day of the year, YYYYMMDD>.txt`. */
export function readFileName(path: string): FecFileName {
  const stem = basename(path).replace(/\.[^.]*$/, '')
  const [, digits, day = ''] = /^(\d+)FEC(\d{8})/i.exec(stem) ?? []
  const siren = digits !== undefined && /^\d{9}$/.test(digits) && !/^0+$/.test(digits) ? digits : undefined
  return { stem, digits, siren, end: parseDay(day) }
}

/**
 * A year has twelve months where only one of its ends is known.
 * @throws {Error} that says which option is missing or wrong
 */
export function fiscalYear(name: FecFileName, options: { start?: string; end?: string }): Period {
  for (const option of ['start', 'end'] as const)
    if (options[option] !== undefined && !isDay(options[option]))
      throw new Error(`--${option} must be a day such as 2023-12-31, not "${options[option]}"`)
  const end = options.end ?? name.end ?? (options.start && shifted(options.start, 12, -1))
  if (end === undefined)
    throw new Error(
      `The file name does not tell the fiscal year (as in 123456789FEC20231231.txt): give --start and --end`,
    )
  const start = options.start ?? shifted(shifted(end, 0, 1), -12, 0)
  if (start >= end) throw new Error(`The fiscal year must end after it starts: ${start} to ${end} does not`)
  if (end >= shifted(start, 24, 0))
    throw new Error(`${start} to ${end} is more than 24 months, the most a year may have`)
  return { start, end }
}

function shifted(day: string, months: number, days: number): string {
  const date = new Date(`${day}T00:00:00Z`)
  date.setUTCMonth(date.getUTCMonth() + months)
  date.setUTCDate(date.getUTCDate() + days)
  return date.toISOString().slice(0, 10)
}
