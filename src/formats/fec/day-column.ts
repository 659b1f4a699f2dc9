/**
 * Reads one column of days. Its first day decides the form of all: YYYYMMDD, or DD/MM/YYYY or YYYY-MM-DD where the whole
 * column is so (docs/spec/imports.md#format). A time after a day is dropped, and counted.
 */
import { type DayForm, dayFormOf, parseDay } from './fields.ts'

/** The day, and after it a time with or without seconds, their fractions and a time zone. */
const dayAndTime = /^(\S{8,10})[ T]\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?$/

export class DayColumn {
  /** Cache: a ledger has a few hundred days in millions of fields. It holds valid days only. */
  readonly #days = new Map<string, string>()
  #form: DayForm | undefined
  droppedTimes = 0

  /** The day as YYYY-MM-DD; undefined if it is none, or is not written as the days before it. */
  read(text: string): string | undefined {
    const known = this.#days.get(text)
    if (known !== undefined) return known
    const apart = text.length > 10 ? dayAndTime.exec(text) : null
    const written = apart === null ? text : apart[1]!
    const form = this.#form ?? dayFormOf(written) ?? 'YYYYMMDD'
    const day = this.#days.get(written) ?? parseDay(written, form)
    if (day === undefined) return undefined
    this.#form = form
    this.#days.set(written, day)
    if (apart !== null) this.droppedTimes += 1
    return day
  }

  /** How the days of this column are written, for messages. */
  get expected(): string {
    return this.#form === undefined || this.#form === 'YYYYMMDD'
      ? 'a day of the calendar written YYYYMMDD is expected'
      : `a day of the calendar written ${this.#form}, as the days before it in this column, is expected`
  }
}

/** Programs that pad with zeros write these if there is no day, some of them with a time. */
export function isNoDay(text: string): boolean {
  return /^(?:0*|00\/00\/0000|0000-00-00)(?:[ T][0:.]+)?$/.test(text)
}
