import { printable } from './printable.ts'

/**
 * Writes rows under a heading, in columns as wide as their longest value.
 * @param numbersFrom place of the first column of numbers; it and all later columns are aligned on the right
 */
export function table(heading: string[], rows: string[][], numbersFrom = heading.length): string[] {
  // Escaped before the widths are measured, because escaping makes texts longer.
  const lines = [heading, ...rows].map((row) => row.map(printable))
  const widths = heading.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  return lines.map((line) =>
    line
      .map((value, column) => value[column < numbersFrom ? 'padEnd' : 'padStart'](widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
