/** Checks the parameters that name a fiscal year or a period. */
import type { Issue } from '../../../packages/contract/src/error-codes.ts'
import { date } from '../query.ts'

/**
 * Problems of idExercice, startDate and endDate together. The schema of each checks it alone. Periods of `monthsMax`
 * calendar months or more are refused. If `isRequired`, a fiscal year or a period must be given.
 * @param rule its `ofPeriod` are parameters of a period, which cannot be combined with a fiscal year
 */
export function periodIssues(
  query: object,
  rule: { monthsMax: number; isRequired: boolean; ofPeriod: readonly string[] },
): Issue[] {
  const { monthsMax, isRequired, ofPeriod } = rule
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
  if (end.data < start.data) return [{ parameter: 'endDate', message: 'must not be before startDate' }]
  if (spansMonths(start.data, end.data, monthsMax))
    return [{ parameter: 'endDate', message: `must be less than ${monthsMax} months after startDate` }]
  return []
}

/**
 * True if `end` is `months` calendar months or more after `start`: 2024-01-01 to 2024-12-31 is not 12 months. A day
 * that the month of `end` lacks counts as its last: 2024-02-29 to 2025-02-28 is 12 months.
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
  // Leap years repeat every 400 years; Date reads years below 100 as 19xx.
  return new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()
}
