/** The table on standard output. */
import { medianMs, type Row, type Sample, timesAsLong } from './rounds.ts'
import { highest, median } from './statistics.ts'
import { floorName, oursName } from './ways.ts'

const heading = [
  'ms',
  'least to most',
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
  const ms = samples.map((sample) => sample.ms)
  const range = `${digits(Math.min(...ms))} to ${digits(Math.max(...ms))}`
  const ratio = (name: string): string => {
    const other = among.find((candidate) => candidate.name === name)
    return other === undefined || other === row ? '' : timesAsLong(row, other).toFixed(2)
  }
  const middle = (value: (sample: Sample) => number | null, print = digits): string => {
    const values = samples.map(value)
    return values.includes(null) ? '' : print(median(values as number[]))
  }
  return [
    `  ${row.name}`,
    ms.includes(0) ? '' : digits(medianMs(row)),
    p99Ms !== undefined ? `p99 ${digits(p99Ms)}` : samples.length > 1 ? range : '',
    ratio(floorName),
    ratio(oursName),
    middle(({ rows }) => rows, wholeNumber),
    middle(({ bytes }) => (bytes === null ? null : bytes / 1e6)),
    middle(({ cpuMs }) => cpuMs),
    middle(({ databaseCpuMs }) => databaseCpuMs),
    peakOf(samples),
    middle(({ firstByteMs }) => firstByteMs),
  ]
}

/** `211`, or `211 + 312` with a process that it started. */
function peakOf(samples: Sample[]): string {
  const peaks = [samples.map(({ peakMb }) => peakMb), samples.map(({ childPeakMb }) => childPeakMb)]
  return peaks
    .map(highest)
    .flatMap((peak) => peak?.toFixed(0) ?? [])
    .join(' + ')
}

export function wholeNumber(value: number): string {
  return value.toLocaleString('en')
}

/** Three significant digits, but at most two decimals. */
export function digits(value: number): string {
  const fraction = value < 10 ? 2 : value < 100 ? 1 : 0
  return value.toLocaleString('en', { minimumFractionDigits: fraction, maximumFractionDigits: fraction })
}
