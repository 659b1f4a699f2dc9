import { printable } from './printable.ts'

/**
 * Rows under a heading, in columns as wide as their longest value.
 * @param numbersFrom the first column of numbers, which are aligned on the right
 */
export function table(heading: string[], rows: string[][], numbersFrom = heading.length): string[] {
  // Before the columns are measured: texts of others may grow when they are printed.
  const lines = [heading, ...rows].map((row) => row.map(printable))
  const widths = heading.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  return lines.map((line) =>
    line
      .map((value, column) => value[column < numbersFrom ? 'padEnd' : 'padStart'](widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
