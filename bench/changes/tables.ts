/** The tables on standard output. */

import { alignedTable, digits, wholeNumber } from '../report/table.ts'
import type { Row, Sample } from '../rows.ts'
import { median } from '../statistics.ts'
import { exportName } from './deltas.ts'
import type { Loads } from './loads.ts'
import type { Waits } from './waits.ts'

/** Of the service and the database, in ms; NaN on a system without /proc. */
const cpuOf = ({ cpuMs, databaseCpuMs }: Sample): number => (cpuMs ?? 0) + (databaseCpuMs ?? Number.NaN)

const middle = (row: Row, value: (sample: Sample) => number): number => median(row.samples.map(value))

const rangeOf = (values: number[]): string =>
  values.length > 1 ? `${digits(Math.min(...values))} to ${digits(Math.max(...values))}` : ''

/** Of each round, then the median. */
export function ratio(row: Row, other: Row, value: (sample: Sample) => number): number {
  return median(row.samples.map((sample, round) => value(sample) / value(other.samples[round]!)))
}

export function tableOfLoads({ rows, log }: Loads): string[] {
  const base = rows.at(-1)!
  const cells = rows.map((row) => [
    `  ${row.name}`,
    digits(middle(row, ({ ms }) => ms) / 1000),
    digits(middle(row, cpuOf) / 1000),
    rangeOf(row.samples.map((sample) => cpuOf(sample) / 1000)),
    row === base ? '' : ratio(row, base, cpuOf).toFixed(3),
  ])
  return [
    ...alignedTable([['load', 's', 'database CPU s', 'least to most', `× ${base.name}`], ...cells]),
    `The log of one load: ${log.rows} rows, ids of ${wholeNumber(log.idsBytes)} bytes; ${wholeNumber(log.diskBytes)} on disk.`,
  ]
}

export function tableOfDeltas(sections: Record<string, Row[]>): string[] {
  const whole = sections['in full']!.find(({ name }) => name === exportName)!
  const heading = [
    'ms',
    'least to most',
    'movements',
    'KB',
    'CPU ms',
    'database CPU ms',
    `CPU × ${exportName}`,
  ]
  const lines = Object.entries(sections).flatMap(([section, rows]) => [
    [section, ...heading.map(() => '')],
    ...rows.map((row) => [
      `  ${row.name}`,
      digits(middle(row, ({ ms }) => ms)),
      rangeOf(row.samples.map(({ ms }) => ms)),
      row.samples[0]!.rows === null ? '' : wholeNumber(middle(row, ({ rows: count }) => count ?? 0)),
      digits(middle(row, ({ bytes }) => (bytes ?? 0) / 1000)),
      digits(middle(row, ({ cpuMs }) => cpuMs ?? Number.NaN)),
      digits(middle(row, ({ databaseCpuMs }) => databaseCpuMs ?? Number.NaN)),
      ratio(row, whole, cpuOf).toFixed(4),
    ]),
  ])
  return alignedTable([['', ...heading], ...lines])
}

export function tableOfWaits(waits: Waits): string[] {
  const { ofMany, ofOne, connections, waitingMb, answeredMb } = waits
  const megabytes = (peak: number | null) => digits(peak ?? Number.NaN)
  return [
    `${waits.waiting} waiting requests: the service took ${megabytes(waitingMb)} MB at most, ${megabytes(answeredMb)} MB ` +
      'when all on one folder were answered',
    `  database connections: ${connections.before} before, ${connections.whileWaiting} while they wait, ` +
      `${connections.busy} of them busy`,
    `  each on its own folder: a commit woke its request after ${digits(median(ofMany.wokenMs))} ms (median of ` +
      `${ofMany.wokenMs.length}; ${rangeOf(ofMany.wokenMs)}); others answered: ${ofMany.othersAnswered}`,
    `  all on one folder: first answer ${digits(ofOne.firstMs)} ms after the commit, last ` +
      `${digits(ofOne.lastMs / 1000)} s; refused: ${ofOne.refused}`,
  ]
}
