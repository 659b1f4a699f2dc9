/** The tables on standard output. */
import type { FullExports } from './full-export.ts'
import type { Results } from './results.ts'
import { isMet, targetsOf } from './results.ts'
import { type Sample, timesAsLong } from './rounds.ts'
import type { Latency } from './small-requests.ts'
import { highest, median } from './statistics.ts'
import { floorName, oursName } from './ways.ts'

export function reportOf(results: Results): string {
  const { machine, movements, rows } = results
  return [
    `${count(rows)} movements of a folder of ${count(movements)}, ${results.at.slice(0, 10)}`,
    `${machine.cpu}, ${machine.cores} cores, ${machine.system}, Node ${machine.node}, PostgreSQL ${machine.postgres}`,
    '',
    table(waysTable(results)),
    'Medians of the rounds; rates are of the answer before compression; CPU and memory are those of the process that',
    'answers, without the database; the ratio is that of each round, then the median.',
    '',
    ...fullExportLines(results),
    table(partsTable(results)),
    '',
    table(smallTable(results)),
    '',
    table(memoryTable(results)),
    '',
    table(targetsTable(results)),
  ].join('\n')
}

function fullExportLines({ movements, fullExports }: Results): string[] {
  const isMissing = !fullExports.some(({ store }) => store === 'MinIO')
  return [
    ...fullExports.flatMap((measured) => [table(fullExportTable(measured)), '']),
    `The full export is of all ${count(movements)} movements with their entries, from its trigger until DONE. What the S3`,
    'server uses itself is not counted.',
    ...(isMissing
      ? ['Full export to MinIO: left out, as .cache/bin/minio is not there; .ci/run builds it.']
      : []),
    '',
  ]
}

function fullExportTable({ store, rounds }: FullExports): string[][] {
  const lines = Object.entries(rounds).map(([name, samples]) => {
    const seconds = samples.map((sample) => sample.seconds)
    return [
      name,
      median(seconds).toFixed(2),
      spread(seconds),
      timesAsLong(rounds, name, floorName).toFixed(2),
      timesAsLong(rounds, name, oursName).toFixed(2),
      (samples[0]!.bytes / 1e6 / median(seconds)).toFixed(0),
      (samples[0]!.bytes / 1e6).toFixed(1),
      ...usageCells(name, samples),
    ]
  })
  const heading = ['s', 'least to most', '× floor', '× movements', 'MB/s', 'MB', 'CPU s', 'peak MB']
  return [[`files in ${store}`, ...heading], ...lines]
}

function spread(seconds: number[]): string {
  return `${Math.min(...seconds).toFixed(2)} to ${Math.max(...seconds).toFixed(2)}`
}

/** CPU and memory; the floor makes nothing. */
function usageCells(name: string, samples: Sample[]): string[] {
  if (name === floorName) return ['', '']
  const cpu = samples.map(({ cpuSeconds }) => cpuSeconds)
  return [
    known(cpu.includes(null) ? null : median(cpu as number[]), 2),
    known(highest(samples.map(({ peakMb }) => peakMb)), 0),
  ]
}

function waysTable({ rounds, contentBytes }: Results): string[][] {
  const lines = Object.entries(rounds).map(([name, samples]) => {
    const seconds = samples.map((sample) => sample.seconds)
    const bytes = samples[0]!.bytes
    return [
      name,
      median(seconds).toFixed(2),
      spread(seconds),
      timesAsLong(rounds, name, floorName).toFixed(2),
      ((contentBytes[name] ?? bytes) / 1e6 / median(seconds)).toFixed(0),
      (bytes / 1e6).toFixed(1),
      ...usageCells(name, samples),
      median(samples.map(({ firstByteMs }) => firstByteMs!)).toFixed(0),
    ]
  })
  return [
    ['way', 's', 'least to most', '× floor', 'MB/s', 'MB sent', 'CPU s', 'peak MB', 'first byte ms'],
    ...lines,
  ]
}

function partsTable({ parts }: Results): string[][] {
  const lines = parts.map(({ name, rows, samples }) => {
    const ms = median(samples.map(({ seconds }) => seconds * 1000))
    return [name, count(rows), ms.toFixed(1), rows === 0 ? '' : ((ms / rows) * 1000).toFixed(2)]
  })
  return [['part of the year', 'movements', 'ms', 'ms per 1,000'], ...lines]
}

function smallTable({ small }: Results): string[][] {
  const line = (name: string, { p50Ms, p99Ms }: Latency): string[] => [
    name,
    p50Ms.toFixed(2),
    p99Ms.toFixed(2),
  ]
  return [
    ['small requests', 'p50 ms', 'p99 ms'],
    line('key/info, idle', small.keyInfoIdle),
    line('key/info, two exports running', small.keyInfoUnderExports),
    line('year unchanged (304)', small.notModified),
  ]
}

function memoryTable({ rounds, rows, small, idleMb, contentBytes, large }: Results): string[][] {
  const line = (movements: number, bytes: number, samples: Sample[]): string[] => {
    const seconds = median(samples.map((sample) => sample.seconds))
    const peak = highest(samples.map(({ peakMb }) => peakMb))
    return [
      `one export of ${count(movements)}`,
      known(peak, 0),
      seconds.toFixed(2),
      (bytes / 1e6 / seconds).toFixed(0),
    ]
  }
  return [
    ['memory of the service', 'peak MB', 's', 'MB/s'],
    ['before the first request', known(idleMb, 0), '', ''],
    line(rows, contentBytes[oursName]!, rounds[oursName]!),
    ...(large === null ? [] : [line(large.rows, large.contentBytes, large.samples)]),
    ['two exports at once', known(small.keyInfoUnderExports.peakMb, 0), '', ''],
  ]
}

function targetsTable(results: Results): string[][] {
  const lines = targetsOf(results).map((target) => [
    target.what,
    `${known(target.measured, target.unit === '×' ? 2 : 0)} ${target.unit}`,
    `${target.atLeast ? 'at least' : 'at most'} ${target.limit} ${target.unit}`,
    isMet(target) ? '✓' : '✗',
  ])
  return [['target', 'measured', 'wanted', ''], ...lines]
}

function known(value: number | null, digits: number): string {
  return value === null ? 'unknown' : value.toFixed(digits)
}

function count(value: number): string {
  return value.toLocaleString('en')
}

/** The first column to the left, the others to the right. */
function table(lines: string[][]): string {
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  const text = lines.map((line) =>
    line
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
      .join('  ')
      .trimEnd(),
  )
  return [text[0]!, '─'.repeat(Math.max(...text.map((line) => line.length))), ...text.slice(1)].join('\n')
}
