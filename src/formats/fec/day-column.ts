/**
 * Reads one column of days. Each tells its own form, and that of most is the form of the column
 * (docs/spec/imports.md#format). Which one that is shows only at the end of the file: judged by the first day, one odd
 * day would condemn all others. A time after a day is dropped, and counted.
 */
import { type DayForm, dayFormNames, parseDay } from './fields.ts'
import { type FecProblem, problemsMax } from './problem.ts'

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
