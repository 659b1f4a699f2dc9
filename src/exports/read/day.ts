/**
 * The day in a time zone, `YYYY-MM-DD`.
 * @param timeZone an IANA name
 * @param now epoch milliseconds
 */
export function dayIn(timeZone: string, now: number): string {
  const parts = new Intl.DateTimeFormat('en', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' })
    .formatToParts(now)
    .map(({ type, value }) => [type, value])
  const { year, month, day } = Object.fromEntries(parts)
  return `${year}-${month}-${day}`
}

/** The minute in a time zone, `YYYY-MM-DDTHH:MM`. @param now epoch milliseconds */
export function minuteIn(timeZone: string, now: number): string {
  const time = new Intl.DateTimeFormat('en-GB', { timeZone, hour: '2-digit', minute: '2-digit' }).format(now)
  return `${dayIn(timeZone, now)}T${time}`
}
