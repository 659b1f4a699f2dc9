import { alignedTable, spreadOf } from '../report/table.ts'
import type { PassSeen } from './readers.ts'

/** One pass over all folders. */
export interface FoldersSample extends Omit<PassSeen, 'cpuMs'> {
  exports: number
  /** Of all processes of the service; null if the system has no /proc. */
  cpuMs: number | null
  databaseCpuMs: number | null
  /** The sum of the peaks of all processes. */
  peakMb: number | null
  clientCpuMs: number
}

export interface FoldersRow {
  name: string
  samples: FoldersSample[]
}

const heading = [
  '',
  'exports/s',
  'MB/s',
  'first byte ms',
  'p99',
  'whole ms',
  'p99',
  'CPU ms',
  'database CPU ms',
  'client CPU ms',
  'peak MB',
  'refused',
]

/** Processor time is that of one export. */
export function tableOfFolders(rows: FoldersRow[]): string[] {
  const lines = rows.map(({ name, samples }) => {
    const spread = (value: (sample: FoldersSample) => number | null) => spreadOf(samples.map(value))
    return [
      name,
      spread(({ exports, ms }) => (exports / ms) * 1000),
      spread(({ bytes, ms }) => bytes / ms / 1000),
      spread(({ firstByteMs }) => firstByteMs.p50),
      spread(({ firstByteMs }) => firstByteMs.p99),
      spread(({ wholeMs }) => wholeMs.p50),
      spread(({ wholeMs }) => wholeMs.p99),
      spread(({ cpuMs, exports }) => cpuMs && cpuMs / exports),
      spread(({ databaseCpuMs, exports }) => databaseCpuMs && databaseCpuMs / exports),
      spread(({ clientCpuMs, exports }) => clientCpuMs / exports),
      spread(({ peakMb }) => peakMb),
      String(samples.reduce((sum, { refused }) => sum + refused.length, 0)),
    ]
  })
  return alignedTable([heading, ...lines])
}
