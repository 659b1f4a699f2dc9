/** The fiscal year or the period that a route is asked for. */
import type { Issue } from '../../errors.ts'
import { date } from '../query.ts'

export interface PeriodRule {
  /** A period of so many calendar months or more is refused. */
  monthsMax: number
  /** One of the two must be given. */
  isRequired: boolean
  /** What says something of a period, and cannot be given with a fiscal year. */
  ofPeriod: readonly string[]
}

/** What is wrong with idExercice, startDate and endDate together. Each by itself is checked by its own schema. */
export function periodIssues(query: object, { monthsMax, isRequired, ofPeriod }: PeriodRule): Issue[] {
  const given = query as Readonly<Record<string, unknown>>
  const { idExercice, startDate, endDate } = given
  if (idExercice !== undefined)
    return ofPeriod
      .filter((parameter) => given[parameter] !== undefined)
      .map((parameter) => ({ parameter, message: 'cannot be combined with idExercice' }))
  if (startDate === undefined && endDate === undefined)
    return isRequired
      ? [{ parameter: 'idExercice', message: 'is required, or startDate and endDate together' }]
      : []
  if (startDate === undefined) return [{ parameter: 'startDate', message: 'is required with endDate' }]
  if (endDate === undefined) return [{ parameter: 'endDate', message: 'is required with startDate' }]
  const [start, end] = [date.safeParse(startDate), date.safeParse(endDate)]
  if (!start.success || !end.success) return []
  if (end.data < start.data) return [{ parameter: 'endDate', message: 'must not lie before startDate' }]
  if (spansMonths(start.data, end.data, monthsMax))
    return [{ parameter: 'endDate', message: `must lie less than ${monthsMax} months after startDate` }]
  return []
}

/**
 * True when `end` lies `months` calendar months or more after `start`: 2024-01-01 to 2024-12-31 is not 12 months. A day
 * that the month of `end` does not have counts as its last: 2024-02-29 to 2025-02-28 is.
 */
function spansMonths(start: string, end: string, months: number): boolean {
  const [startYear, startMonth, startDay] = partsOf(start)
  const [endYear, endMonth, endDay] = partsOf(end)
  const apart = 12 * (endYear - startYear) + endMonth - startMonth
  return apart > months || (apart === months && endDay >= Math.min(startDay, lastDayOf(endYear, endMonth)))
}

function partsOf(date: string): [year: number, month: number, day: number] {
  return date.split('-').map(Number) as [number, number, number]
}

function lastDayOf(year: number, month: number): number {
  // Leap years come round every 400 years; Date takes years below 100 for those of the 20th century.
  return new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()
}
