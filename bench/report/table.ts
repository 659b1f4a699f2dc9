/** The table on standard output. */
import { floorName, oursName, type Row, ratiosOf, type Sample } from '../rows.ts'
import { median } from '../statistics.ts'

const heading = [
  'ms',
  'p99',
  '× floor',
  '× movements',
  'movements',
  'MB',
  'CPU ms',
  'database CPU ms',
  'peak MB',
  'first byte ms',
]

/**
 * @param sections rows that took turns, each section with a heading; ratios are to its floor and its
 *   movements export
 */
export function tableOf(sections: Record<string, Row[]>): string[] {
  const lines = Object.entries(sections).flatMap(([name, rows]) => [
    [name, ...heading.map(() => '')],
    ...rows.map((row) => cellsOf(row, rows)),
  ])
  return alignedTable([['', ...heading], ...lines])
}

/** Of lines of cells; a line with nothing after its first cell is a heading. */
export function alignedTable(all: string[][]): string[] {
  const widths = all[0]!.map((_, column) => Math.max(...all.map((line) => line[column]!.length)))
  const text = all.map((line) =>
    line
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
      .join('  ')
      .trimEnd(),
  )
  return text.flatMap((line, index) => (all[index]!.slice(1).some(Boolean) ? [line] : ['', line]))
}

function cellsOf(row: Row, among: Row[]): string[] {
  const { samples, p99Ms } = row
  const spread = (value: (sample: Sample) => number | null, print = digits) =>
    spreadOf(samples.map(value), print)
  const ratio = (name: string): string => {
    const other = among.find((candidate) => candidate.name === name)
    if (other === undefined || other === row) return ''
    return spreadOf(ratiosOf(row, other), (value) => value.toFixed(2))
  }
  const middle = (value: (sample: Sample) => number | null, print = digits): string => {
    const values = samples.map(value)
    return values.includes(null) ? '' : print(median(values as number[]))
  }
  return [
    `  ${row.name}`,
    samples.some(({ ms }) => ms === 0) ? '' : spread(({ ms }) => ms),
    p99Ms === undefined ? '' : digits(p99Ms),
    ratio(floorName),
    ratio(oursName),
    middle(({ rows }) => rows, wholeNumber),
    middle(({ bytes }) => (bytes === null ? null : bytes / 1e6)),
    spread(({ cpuMs }) => cpuMs),
    spread(({ databaseCpuMs }) => databaseCpuMs),
    peakOf(samples),
    spread(({ firstByteMs }) => firstByteMs),
  ]
}

/** `211 (205-220)`, or `211 (205-220) + 312 (300-315)` with a process that it started. */
function peakOf(samples: Sample[]): string {
  const peaks = [samples.map(({ peakMb }) => peakMb), samples.map(({ childPeakMb }) => childPeakMb)]
  return peaks
    .map((values) => spreadOf(values, (value) => value.toFixed(0)))
    .filter(Boolean)
    .join(' + ')
}

export function wholeNumber(value: number): string {
  return value.toLocaleString('en')
}

/** `211 (205-230)`: the median, then the least and the most; empty if one of them is unknown. */
export function spreadOf(values: (number | null)[], print = digits): string {
  if (values.includes(null)) return ''
  const known = values as number[]
  const middle = print(median(known))
  return known.length === 1 ? middle : `${middle} (${print(Math.min(...known))}-${print(Math.max(...known))})`
}

/** Three significant digits, but at most two decimals. */
export function digits(value: number): string {
  const fraction = value < 10 ? 2 : value < 100 ? 1 : 0
  return value.toLocaleString('en', { minimumFractionDigits: fraction, maximumFractionDigits: fraction })
}
