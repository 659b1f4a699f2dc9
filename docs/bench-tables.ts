/**
 * `npm run docs:bench`: writes the results of the bench (bench/results) into the pages that show them, between
 * `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`. No number of theirs is typed.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { floorName, oursName, type Row, ratiosOf, type Sample } from '../bench/rows.ts'
import { median } from '../bench/statistics.ts'

/** Pages with such marks. */
export const pagesWithResults = ['README.md', 'bench/README.md']

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

const root = new URL('../', import.meta.url)
const files = {
  movements: 'bench/results/movements-600000.json',
  memory: 'bench/results/memory-600000.json',
  folders: 'bench/results/folders-2000.json',
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
  const [movements, memory, folders] = [
    read<MovementsRun>(files.movements),
    read<MemoryRun>(files.memory),
    read<FoldersRun>(files.folders),
  ]
  const of =
    <T>(run: T | undefined, lines: (run: T) => string[]) =>
    () =>
      run === undefined ? ['Not measured yet.'] : lines(run)
  return {
    year: of(movements, yearTable),
    columns: of(movements, (run) => tableOfWays(run.sections['a year as columns'] ?? [])),
    files: of(movements, filesTable),
    other: of(movements, otherTable),
    targets: of(movements, (run) => targetsTable(run, memory)),
    memory: of(memory, memoryTable),
    folders: of(folders, foldersTable),
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
      ratio(row, rowOf(rows, floorName)),
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
        ratio(row, rowOf(rows, floorName)),
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
        const of = (pick: (sample: (typeof samples)[0]) => number, decimals: number) =>
          spreadOf(samples.map(pick), decimals)
        return [
          name,
          of(({ exports, ms }) => (exports / ms) * 1000, 0),
          of(({ bytes, ms }) => bytes / ms / 1000, 0),
          of(({ firstByteMs }) => firstByteMs.p50, 0),
          of(({ firstByteMs }) => firstByteMs.p99, 0),
          of(({ wholeMs }) => wholeMs.p50, 0),
          of(({ wholeMs }) => wholeMs.p99, 0),
          of(({ cpuMs, exports }) => cpuMs / exports, 1),
          of(({ databaseCpuMs, exports }) => databaseCpuMs / exports, 1),
          of(({ clientCpuMs, exports }) => clientCpuMs / exports, 2),
          of(({ peakMb }) => peakMb, 0),
          String(samples.reduce((sum, { refused }) => sum + refused.length, 0)),
        ]
      }),
    ),
  ]
}

interface Target {
  text: string
  limit: number
  /** Of the rounds or starts; undefined if this was not measured. */
  values: number[] | undefined
  decimals: number
  unit: string
  /** All values count, not their median. */
  isOfAll?: boolean
}

function targetsTable({ sections }: MovementsRun, memory: MemoryRun | undefined): string[] {
  const year = sections['a year']!
  const ratios = (rows: Row[] | undefined, name: string, other: string) => {
    const [row, base] = [name, other].map((wanted) => rows?.find((candidate) => candidate.name === wanted))
    return row && base && ratiosOf(row, base)
  }
  const pick = (row: Row | undefined, value: (sample: Sample) => number | null) =>
    row?.samples.flatMap((sample) => value(sample) ?? [])
  const rust = year.find(({ name }) => name.startsWith('Rust'))
  const ours = rowOf(year, oursName)
  const cpu = rust && ours.samples.map(({ cpuMs }, round) => cpuMs! / rust.samples[round]!.cpuMs!)
  const atOnce = (name: string) =>
    pick(
      memory?.rows.find((row) => row.name === name),
      (s) => s.peakMb,
    )
  const keyInfo = sections['small requests']?.find(({ name }) => name === 'key/info while two exports run')
  const targets: Target[] = [
    { text: 'a year, × floor', limit: 1.1, values: ratios(year, oursName, floorName), decimals: 2, unit: '' },
    {
      text: 'a year without digest, × floor',
      limit: 1,
      values: ratios(year, `${oursName}, without digest`, floorName),
      decimals: 2,
      unit: '',
    },
    { text: 'its first byte', limit: 50, values: pick(ours, (s) => s.firstByteMs), decimals: 0, unit: ' ms' },
    { text: 'its processor time, × that of the Rust peer', limit: 1, values: cpu, decimals: 2, unit: '' },
    ...['JSON, 1 at once', 'JSON, 2 at once', 'zstd, 2 at once'].map((name) => ({
      text: `memory of exports, ${name}: highest of all starts`,
      limit: 256,
      values: atOnce(name),
      decimals: 0,
      unit: ' MB',
      isOfAll: true,
    })),
    {
      text: 'memory of two exports, in the service that has sent every form before',
      limit: 256,
      values: pick(keyInfo, (s) => s.peakMb),
      decimals: 0,
      unit: ' MB',
    },
    {
      text: 'TRA file, × floor',
      limit: 1.6,
      values: ratios(sections['full export to a folder'], 'full export, TRA', floorName),
      decimals: 2,
      unit: '',
    },
    {
      text: 'JSON file to MinIO, × movements export',
      limit: 1.6,
      values: ratios(sections['full export to MinIO'], 'full export, JSON', oursName),
      decimals: 2,
      unit: '',
    },
    {
      text: '`key/info` beside two exports, p99',
      limit: 20,
      values: keyInfo?.p99Ms === undefined ? undefined : [keyInfo.p99Ms],
      decimals: 1,
      unit: ' ms',
    },
  ]
  return table(
    ['Target', 'at most', 'measured', 'met'],
    targets.map(({ text, limit, values, decimals, unit, isOfAll }) => {
      if (!values) return [text, `${limit}${unit}`, 'not measured', '']
      const met = (isOfAll ? Math.max(...values) : median(values)) <= limit
      return [text, `${limit}${unit}`, `${spreadOf(values, decimals)}${unit}`, met ? 'yes' : '**no**']
    }),
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

/** `1.74 (1.70-1.81)` */
function spreadOf(values: number[], decimals: number): string {
  const print = (value: number) =>
    value.toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals })
  const middle = print(median(values))
  const ends = [print(Math.min(...values)), print(Math.max(...values))]
  return ends.every((end) => end === middle) ? middle : `${middle} (${ends.join('-')})`
}

function megabytes({ samples }: Row): string {
  const { bytes } = samples[0]!
  return bytes === null ? '' : spreadOf([bytes / 1e6], bytes < 100e6 ? 1 : 0)
}

function whole(value: number): string {
  return value.toLocaleString('en')
}

function table(heading: string[], lines: string[][]): string[] {
  return [heading, heading.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`)
}

if (import.meta.main)
  for (const page of pagesWithResults) {
    const address = new URL(page, root)
    writeFileSync(address, withResults(readFileSync(address, 'utf8')))
  }
