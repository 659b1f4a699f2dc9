/** What the service has to keep to, and what was measured of it. */
import {
  floorName,
  joinedName,
  oursName,
  type Row,
  ratiosOf,
  type Sample,
  withoutDigestName,
} from '../bench/rows.ts'
import { median } from '../bench/statistics.ts'
import { spreadOf, table } from './markdown.ts'

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

/**
 * @param sections of `npm run bench -- year`
 * @param memory rows of `npm run bench -- memory`
 */
export function targetsTable(sections: Record<string, Row[]>, memory: Row[] | undefined): string[] {
  const year = sections['a year']!
  const pick = (row: Row | undefined, value: (sample: Sample) => number | null) =>
    row?.samples.flatMap((sample) => value(sample) ?? [])
  const rust = year.find(({ name }) => name.startsWith('Rust'))
  const ours = year.find(({ name }) => name === oursName)
  const cpu = (row: Row | undefined) =>
    rust && row?.samples.map(({ cpuMs }, round) => cpuMs! / rust.samples[round]!.cpuMs!)
  const atOnce = (name: string) =>
    pick(
      memory?.find((row) => row.name === name),
      (s) => s.peakMb,
    )
  const keyInfo = sections['small requests']?.find(({ name }) => name === 'key/info while two exports run')
  const targets: Target[] = [
    ratioOf('a year, × floor', 1.1, year, oursName, floorName),
    ratioOf('a year without digest, × floor', 1, year, withoutDigestName, floorName),
    ratioOf('a year, × one joined COPY', 1.1, year, oursName, joinedName),
    ratioOf('a year without digest, × one joined COPY', 1, year, withoutDigestName, joinedName),
    { text: 'its first byte', limit: 50, values: pick(ours, (s) => s.firstByteMs), decimals: 0, unit: ' ms' },
    {
      text: 'its processor time, × that of the Rust peer',
      limit: 1,
      values: cpu(ours),
      decimals: 2,
      unit: '',
    },
    {
      text: 'its processor time without digest, × that of the Rust peer',
      limit: 1,
      values: cpu(year.find(({ name }) => name === withoutDigestName)),
      decimals: 2,
      unit: '',
    },
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
    ratioOf('TRA file, × floor', 1.6, sections['full export to a folder'], 'full export, TRA', floorName),
    ratioOf(
      'JSON file to MinIO, × movements export',
      1.6,
      sections['full export to MinIO'],
      'full export, JSON',
      oursName,
    ),
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

/** Of the times of each round. */
function ratioOf(text: string, limit: number, rows: Row[] | undefined, name: string, other: string): Target {
  const [row, base] = [name, other].map((wanted) => rows?.find((candidate) => candidate.name === wanted))
  return { text, limit, values: row && base && ratiosOf(row, base), decimals: 2, unit: '' }
}
