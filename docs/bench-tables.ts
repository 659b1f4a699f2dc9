/**
 * `npm run docs -- bench`: writes the results of the bench (bench/results) into the pages that show them, between
 * `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`. No number of theirs is typed.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import {
  floorName,
  namesOfCopies,
  oursName,
  type Row,
  ratiosOf,
  type Sample,
  withoutDigestName,
} from '../bench/rows.ts'
import type { FullExportSample } from '../bench/small/full-exports.ts'
import { median } from '../bench/statistics.ts'
import { targetsTable } from './bench-targets.ts'
import { spreadOf, table } from './markdown.ts'

/** Pages with such marks. */
export const pagesWithResults = [
  'README.md',
  'bench/README.md',
  'docs/guides/whole-firm.md',
  'docs/guides/sizes.md',
  'docs/operators/upgrade.md',
]

interface Run {
  at: string
  machine: { cpu: string; cores: number; node: string; postgres: string }
  load?: { atStart: number; others: number | null }
}

interface MovementsRun extends Run {
  sections: Record<string, Row[]>
}

interface MemoryRun extends Run {
  starts: number
  rows: Row[]
}

interface FoldersRun extends Run {
  folders: number
  movements: number
  clients: number
  rows: {
    name: string
    samples: {
      exports: number
      ms: number
      bytes: number
      firstByteMs: { p50: number; p99: number }
      wholeMs: { p50: number; p99: number }
      cpuMs: number
      databaseCpuMs: number
      clientCpuMs: number
      peakMb: number
      refused: number[]
    }[]
  }[]
}

interface FullExportsRun extends Run {
  folders: number
  movements: number
  clients: number
  processes: number
  rows: { name: string; samples: FullExportSample[] }[]
}

interface NewcomerRun extends Run {
  results: { name: string; s: number; targetS: number; isMet: boolean }[]
}

interface FirmRun extends Run {
  folders: number
  movements: number
  /** Movements of the large ledger; 0: there was none. */
  large: number
  figures: { name: string; unit: string; values: number[]; atMost?: number }[]
}

interface UpgradeRun {
  secondsUntil: Record<string, number>
  secondsWithoutAnAnswer: number
  slowestSteps: string[]
  outcomes: Record<string, Record<string, number>>
  faults: string[]
}

const root = new URL('../', import.meta.url)
const files = {
  movements: 'bench/results/movements-600000.json',
  memory: 'bench/results/memory-600000.json',
  folders: 'bench/results/folders-2000.json',
  fullExports: 'bench/results/full-exports-3000.json',
  newcomer: 'bench/results/newcomer.json',
  firm: 'bench/results/firm-300.json',
  largeFirm: 'bench/results/firm-3000.json',
  upgrades: 'bench/results/upgrades.json',
}

/** The page with the results of the last runs in it. */
export function withResults(page: string): string {
  const blocks = blocksOfResults()
  return page.replaceAll(/<!-- bench:(\w+) -->\n[\s\S]*?<!-- \/bench:\1 -->/g, (_, name: string) => {
    const lines = blocks[name]?.() ?? []
    return [`<!-- bench:${name} -->`, ...lines, `<!-- /bench:${name} -->`].join('\n')
  })
}

function blocksOfResults(): Record<string, () => string[]> {
  const [movements, memory, folders, fullExports, newcomer, firm, largeFirm, upgrade] = [
    read<MovementsRun>(files.movements),
    read<MemoryRun>(files.memory),
    read<FoldersRun>(files.folders),
    read<FullExportsRun>(files.fullExports),
    read<NewcomerRun>(files.newcomer),
    read<FirmRun>(files.firm),
    read<FirmRun>(files.largeFirm),
    read<UpgradeRun>(files.upgrades),
  ]
  const tableOf =
    <T>(run: T | undefined, lines: (run: T) => string[]) =>
    () =>
      run === undefined ? ['Not measured yet.'] : lines(run)
  return {
    year: tableOf(movements, yearTable),
    columns: tableOf(movements, (run) => tableOfWays(run.sections['a year as columns'] ?? [])),
    files: tableOf(movements, filesTable),
    other: tableOf(movements, otherTable),
    peers: tableOf(movements, peersTable),
    targets: tableOf(movements, (run) => targetsTable(run.sections, memory?.rows)),
    memory: tableOf(memory, memoryTable),
    folders: tableOf(folders, foldersTable),
    full: tableOf(fullExports, fullExportsTable),
    newcomer: tableOf(newcomer, newcomerTable),
    firm: tableOf(firm, (run) => firmTable(run, files.firm)),
    largeFirm: tableOf(largeFirm, (run) => firmTable(run, files.largeFirm)),
    upgrade: tableOf(upgrade, upgradeTable),
    bytes: tableOf(movements, bytesTable),
    sizes: tableOf(firm, (run) => sizesTable(run, largeFirm ? [run, largeFirm] : [run])),
    firms: tableOf(firm, (run) => firmsTable(largeFirm ? [run, largeFirm] : [run])),
  }
}

function read<T>(path: string): T | undefined {
  const address = new URL(path, root)
  return existsSync(address) ? (JSON.parse(readFileSync(address, 'utf8')) as T) : undefined
}

function yearTable(run: MovementsRun): string[] {
  const rows = run.sections['a year']!
  const { rows: movements } = rowOf(rows, oursName).samples[0]!
  return [
    ...origin(run, files.movements, repeated(rows[0]!.samples.length, 'round')),
    '',
    `A year of ${whole(movements!)} movements:`,
    '',
    ...tableOfWays(rows),
  ]
}

function tableOfWays(rows: Row[]): string[] {
  return table(
    ['', 's', '× floor', 'CPU s', 'database CPU s', 'peak MB', 'first byte ms', 'MB'],
    rows.map((row) => [
      row.name,
      spread(row, ({ ms }) => ms / 1000, 2),
      ratioToFloor(row, rows),
      spread(row, ({ cpuMs }) => cpuMs && cpuMs / 1000, 2),
      spread(row, ({ databaseCpuMs }) => databaseCpuMs && databaseCpuMs / 1000, 2),
      spread(row, ({ peakMb }) => peakMb, 0),
      spread(row, ({ firstByteMs }) => firstByteMs, 0),
      megabytes(row),
    ]),
  )
}

function filesTable({ sections }: MovementsRun): string[] {
  const lines = ['folder', 'MinIO'].flatMap((store) => {
    const rows = sections[`full export to ${store === 'folder' ? 'a folder' : store}`] ?? []
    return rows
      .filter(({ name }) => name.startsWith(fullExport))
      .map((row) => [
        `${row.name.slice(fullExport.length)}${store === 'folder' ? '' : `, to ${store}`}`,
        spread(row, ({ ms }) => ms / 1000, 2),
        ratioToFloor(row, rows),
        ratio(row, rowOf(rows, oursName)),
        spread(row, ({ cpuMs }) => cpuMs && cpuMs / 1000, 2),
        megabytes(row),
        [spread(row, ({ peakMb }) => peakMb, 0), spread(row, ({ childPeakMb }) => childPeakMb ?? null, 0)]
          .filter(Boolean)
          .join(' and '),
      ])
  })
  return table(['', 's', '× floor', '× movements export', 'CPU s', 'MB on disk', 'peak MB'], lines)
}

/** Of those that give the year: each divided by ours in the same round, with and without the digest. */
function peersTable({ sections }: MovementsRun): string[] {
  const rows = sections['a year']!
  const ours = rowOf(rows, oursName)
  const withoutDigest = rows.find(({ name }) => name === withoutDigestName)
  const peers = rows.filter(({ name }) => !namesOfCopies.includes(name) && !name.startsWith(oursName))
  const cpu = ({ cpuMs }: Sample) => cpuMs
  const both = ({ cpuMs, databaseCpuMs }: Sample) => cpuMs && cpuMs + (databaseCpuMs ?? 0)
  const quotients = (row: Row, other: Row | undefined, pick: (sample: Sample) => number | null) => {
    const values = other?.samples.map((sample, round) => pick(row.samples[round]!)! / pick(sample)!) ?? []
    return values.length > 0 && values.every(Number.isFinite) ? spreadOf(values, 2) : ''
  }
  return table(
    [
      '× ours',
      's',
      's, without digest',
      'CPU',
      'CPU, without digest',
      'CPU with the database, without digest',
      'first byte',
      'peak memory',
    ],
    peers.map((row) => [
      row.name,
      quotients(row, ours, ({ ms }) => ms),
      quotients(row, withoutDigest, ({ ms }) => ms),
      quotients(row, ours, cpu),
      quotients(row, withoutDigest, cpu),
      quotients(row, withoutDigest, both),
      quotients(row, ours, ({ firstByteMs }) => firstByteMs),
      quotients(row, ours, ({ peakMb }) => peakMb),
    ]),
  )
}

const fullExport = 'full export, '

function otherTable({ sections }: MovementsRun): string[] {
  const parts = (sections['part of it'] ?? []).map((row) => [
    row.name,
    whole(row.samples[0]!.rows!),
    spread(row, ({ ms }) => ms, 0),
    '',
  ])
  const requests = (sections['small requests'] ?? []).map((row) => [
    row.name,
    '',
    spread(row, ({ ms }) => ms, 1),
    row.p99Ms!.toFixed(1),
  ])
  return table(['', 'movements', 'ms', 'p99 ms'], [...parts, ...requests])
}

function memoryTable(run: MemoryRun): string[] {
  const peak = (row: Row) => row.samples.map(({ peakMb }) => peakMb!)
  return [
    ...origin(run, files.memory, repeated(run.starts, 'start')),
    '',
    ...table(
      ['', 'median MB', 'least', 'highest', 's until the last has ended', 'CPU s'],
      run.rows.map((row) => [
        row.name,
        median(peak(row)).toFixed(0),
        Math.min(...peak(row)).toFixed(0),
        Math.max(...peak(row)).toFixed(0),
        median(row.samples.map(({ ms }) => ms / 1000)).toFixed(1),
        median(row.samples.map(({ cpuMs }) => cpuMs! / 1000)).toFixed(1),
      ]),
    ),
  ]
}

function foldersTable(run: FoldersRun): string[] {
  const { folders, movements, clients, rows } = run
  return [
    ...origin(run, files.folders, repeated(rows[0]!.samples.length, 'round')),
    '',
    `${whole(folders)} folders of ${whole(movements)} movements, ${clients} clients:`,
    '',
    ...table(
      [
        'processes',
        'exports/s',
        'MB/s',
        'first byte ms, median',
        'p99',
        'whole ms, median',
        'p99',
        'CPU ms',
        'database CPU ms',
        'client CPU ms',
        'peak MB',
        'refused',
      ],
      rows.map(({ name, samples }) => {
        const spread = (pick: (sample: (typeof samples)[0]) => number, decimals: number) =>
          spreadOf(samples.map(pick), decimals)
        return [
          name,
          spread(({ exports, ms }) => (exports / ms) * 1000, 0),
          spread(({ bytes, ms }) => bytes / ms / 1000, 0),
          spread(({ firstByteMs }) => firstByteMs.p50, 0),
          spread(({ firstByteMs }) => firstByteMs.p99, 0),
          spread(({ wholeMs }) => wholeMs.p50, 0),
          spread(({ wholeMs }) => wholeMs.p99, 0),
          spread(({ cpuMs, exports }) => cpuMs / exports, 1),
          spread(({ databaseCpuMs, exports }) => databaseCpuMs / exports, 1),
          spread(({ clientCpuMs, exports }) => clientCpuMs / exports, 2),
          spread(({ peakMb }) => peakMb, 0),
          String(samples.reduce((sum, { refused }) => sum + refused.length, 0)),
        ]
      }),
    ),
  ]
}

function fullExportsTable(run: FullExportsRun): string[] {
  const { folders, movements, clients, processes, rows } = run
  return [
    ...origin(run, files.fullExports, repeated(rows[0]!.samples.length, 'round')),
    '',
    `${whole(folders)} folders of ${whole(movements)} movements, ${clients} clients that trigger, ${repeated(processes, 'process')}:`,
    '',
    ...table(
      [
        '',
        'DONE',
        's',
        'exports/s',
        'full speed after s',
        'triggered in s',
        'CPU s',
        'database CPU s',
        'key/info ms, median',
        'p99',
      ],
      rows.map(({ name, samples }) => {
        const spread = (pick: (sample: FullExportSample) => number | null, decimals: number) =>
          spreadOf(
            samples.map((sample) => pick(sample) ?? Number.NaN),
            decimals,
          )
        return [
          name,
          spread(({ done }) => done, 0),
          spread(({ seconds }) => seconds, 0),
          spread(({ done, seconds }) => done / seconds, 1),
          spread(({ fullSpeedAfter }) => fullSpeedAfter, 0),
          spread(({ triggerSeconds }) => triggerSeconds, 0),
          spread(({ cpuSeconds }) => cpuSeconds, 0),
          spread(({ databaseCpuSeconds }) => databaseCpuSeconds, 0),
          spread(({ keyInfoMs }) => keyInfoMs.p50, 1),
          spread(({ keyInfoMs }) => keyInfoMs.p99, 0),
        ]
      }),
    ),
  ]
}

function newcomerTable(run: NewcomerRun): string[] {
  const { cores, cpu } = run.machine
  const load = run.load === undefined ? '' : `; load ${run.load.atStart.toFixed(1)} before`
  const lines = run.results.map(({ name, s, targetS, isMet }) => [
    name,
    s.toFixed(0),
    String(targetS),
    isMet ? 'yes' : '**no**',
  ])
  return [
    `${cores} cores (${cpu}), ${run.at.slice(0, 10)}: from the clone, with an empty cache of npm (\`newcomer.json\`)${load}.`,
    '',
    ...table(['', 's', 'at most', 'met'], lines),
  ]
}

const firmOf = ({ folders, movements }: FirmRun) =>
  `${whole(folders)} folders of ${whole(movements)} movements`

function firmTable(run: FirmRun, file: string): string[] {
  const further = run.large > 0 ? ', and one large ledger' : ''
  return [
    ...origin(run, file, repeated(run.figures[0]!.values.length, 'round')),
    '',
    `A firm of ${firmOf(run)}; then folders of 2,000 in a stream${further}:`,
    '',
    ...table(
      ['', 'at most', 'measured', 'met'],
      run.figures.map(({ name, unit, values, atMost }) => {
        const measured = spreadOf(values, unit === 's' ? 2 : 0)
        if (atMost === undefined) return [name, '', `${measured} ${unit}`, '']
        return [name, `${atMost} ${unit}`, `${measured} ${unit}`, median(values) <= atMost ? 'yes' : '**no**']
      }),
    ),
  ]
}

/** What a partner waits for who copies a firm, in the median. */
function firmsTable(runs: FirmRun[]): string[] {
  const waits = ['first copy', 'nothing changed', 'folders changed', 'verify of all', 'a commit until']
  const lines = waits.map((wait) => {
    const found = runs.map((run) => run.figures.find(({ name, unit }) => unit === 's' && name.includes(wait)))
    const names = new Set(found.map((figure) => figure?.name ?? wait))
    return [
      [...names].join('; '),
      ...found.map((figure) => (figure ? `${median(figure.values).toFixed(2)} s` : '')),
    ]
  })
  return table(['', ...runs.map(firmOf)], lines)
}

/** One large ledger, which the bench of a firm copies too, beside firms. */
function sizesTable(withLarge: FirmRun, runs: FirmRun[]): string[] {
  const shown = (run: FirmRun, ...words: string[]) => {
    const fitting = run.figures.filter(({ name }) => words.every((word) => name.includes(word)))
    const [figure] = fitting.toSorted((a, b) => a.name.length - b.name.length)
    if (!figure) return ''
    const digits = figure.unit === 's' ? 2 : 0
    return `${median(figure.values).toFixed(digits)} ${figure.unit}`
  }
  const line = (what: string, large: string[], firm: string[]) => [
    what,
    large.length === 0 ? '' : shown(withLarge, ...large),
    ...runs.map((run) => shown(run, ...firm)),
  ]
  const copied = `${withLarge.large.toLocaleString('en')} into SQLite`
  const heading = ['', `one folder of ${withLarge.large.toLocaleString('en')} movements`, ...runs.map(firmOf)]
  return table(heading, [
    line('first `sync` into SQLite', [copied], ['first copy']),
    line('memory of the command', [copied, 'memory'], ['first copy', 'memory']),
    line('`sync` where nothing changed', [], ['nothing changed']),
    line('`sync` of 7 changed folders; of 100', [], ['folders changed']),
    line('`verify` of all', [], ['verify of all']),
    line('`sync --follow`: a commit until it is in the copy', [], ['a commit until']),
    line('`key/info` beside two streams, the slowest in a hundred', [], ['key/info']),
  ])
}

function upgradeTable({ secondsUntil, outcomes, faults, ...run }: UpgradeRun): string[] {
  const all = Object.values(outcomes)
  const count = (pattern: RegExp) =>
    all
      .flatMap(Object.entries<number>)
      .filter(([outcome]) => pattern.test(outcome))
      .reduce((sum, [, times]) => sum + times, 0)
  const events = outcomes['events']!
  return table(
    ['Under load', ''],
    [
      ...Object.entries(secondsUntil).map(([moment, seconds]) => [`until ${moment}`, `${seconds} s`]),
      ['the longest time without an answer 200', `${run.secondsWithoutAnAnswer.toFixed(1)} s`],
      ['the slowest step', `\`${run.slowestSteps[0]!.replace(' ', '`, ')}`],
      ['requests that were answered; under maintenance; that found no process', ''],
      ['events that were published; that arrived', `${events['published']}; ${events['delivered']}`],
      ['full exports that ended', String(count(/^exports$/))],
      ['wrong copies, short streams, other refusals', String(faults.length)],
    ].map(([what, figure]) => [
      what!,
      figure || [/^done$/, /^503/, /^502/].map((pattern) => count(pattern).toLocaleString('en')).join('; '),
    ]),
  )
}

/** A year and full exports of it as they are sent. */
function bytesTable({ sections }: MovementsRun): string[] {
  const rows = [...sections['a year']!, ...sections['full export to a folder']!]
  const line = (what: string, plain: string, zstd: string) => {
    const bytes = [plain, zstd].map((name) => rows.find((row) => row.name === name)?.samples[0]?.bytes)
    return [
      what,
      ...bytes.map((count) => (count ? `${Math.round(count / 1e6).toLocaleString('en')} MB` : '')),
    ]
  }
  const count = rowOf(sections['a year']!, oursName).samples[0]!.rows!.toLocaleString('en')
  return table(
    [`${count} movements`, 'plain', 'zstd'],
    [
      line('movements, JSON or NDJSON', oursName, `${oursName}, zstd`),
      line('full export, JSON', 'full export, JSON', 'full export, JSON, zstd'),
      line('full export, TRA', 'full export, TRA', 'full export, TRA, zstd'),
      line('full export, CSV', 'full export, CSV', 'full export, CSV, zstd'),
      line('full export, FEC', 'full export, FEC', ''),
      line('full export, Parquet', 'full export, Parquet', ''),
    ],
  )
}

/** Where and when, and a warning if the machine was busy. */
function origin({ at, machine, load }: Run, file: string, times: string): string[] {
  const { cpu, cores, node, postgres } = machine
  const name = file.split('/').at(-1)
  const warning =
    (load?.others ?? 0) > 0.05
      ? [`**Other programs used ${(load!.others! * 100).toFixed(0)} % of the processors meanwhile.**`]
      : []
  return [
    `${cores} cores (${cpu}), Node ${node.slice(1)}, PostgreSQL ${postgres}, ${at.slice(0, 10)}: median (least-most) of ${times} (\`${name}\`).`,
    ...warning,
  ]
}

function repeated(count: number, what: string): string {
  return count === 1 ? `one ${what}` : `${count} ${what}s`
}

function rowOf(rows: Row[], name: string): Row {
  const row = rows.find((candidate) => candidate.name === name)
  if (!row) throw new Error(`The results have no row ${name}`)
  return row
}

function spread(row: Row, pick: (sample: Sample) => number | null, decimals: number): string {
  const values = row.samples.map(pick)
  return values.includes(null) ? '' : spreadOf(values as number[], decimals)
}

function ratio(row: Row, other: Row): string {
  return row === other ? '1' : spreadOf(ratiosOf(row, other), 2)
}

/** Empty for a run that measured another floor. */
function ratioToFloor(row: Row, rows: Row[]): string {
  const floor = rows.find(({ name }) => name === floorName)
  return floor === undefined ? '' : ratio(row, floor)
}

function megabytes({ samples }: Row): string {
  const { bytes } = samples[0]!
  return bytes === null ? '' : spreadOf([bytes / 1e6], bytes < 100e6 ? 1 : 0)
}

function whole(value: number): string {
  return value.toLocaleString('en')
}

if (import.meta.main)
  for (const page of pagesWithResults) {
    const address = new URL(page, root)
    writeFileSync(address, withResults(readFileSync(address, 'utf8')))
  }
