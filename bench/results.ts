/** What a run of the bench found, as it is kept: raw numbers of every round, and what follows from them. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { FullExports } from './full-export.ts'
import type { Usage } from './measure.ts'
import type { Rounds, Sample } from './rounds.ts'
import { timesAsLong } from './rounds.ts'
import type { Part, SmallRequests } from './small-requests.ts'
import { highest, median } from './statistics.ts'
import { floorName, fullExportName, objectPerRowName, oursName, traExportName } from './ways.ts'

export interface Machine {
  cpu: string
  cores: number
  memoryGb: number
  system: string
  node: string
  postgres: string
}

/** The service alone, on a larger folder. */
export interface LargeFolder {
  movements: number
  rows: number
  contentBytes: number
  samples: Sample[]
}

export interface Results {
  at: string
  machine: Machine
  /** Of the folder; `rows` are those of the answer. */
  movements: number
  rows: number
  /** Of each answer before compression, by way. */
  contentBytes: Record<string, number>
  rounds: Rounds
  parts: Part[]
  small: SmallRequests
  /** Of the service before its first request. */
  idleMb: number | null
  /** Of each store there was. */
  fullExports: FullExports[]
  large: LargeFolder | null
}

export interface Target {
  what: string
  /** Null where the system does not tell. */
  measured: number | null
  limit: number
  unit: string
  /** Whether more is better. */
  atLeast: boolean
}

export function targetsOf({ rounds, small, large, parts, fullExports }: Results): Target[] {
  const ours = rounds[oursName]!
  const peaks = (samples: Usage[]): (number | null)[] => samples.map(({ peakMb }) => peakMb)
  const everyWay = Object.keys(rounds).filter((name) => name.startsWith(oursName))
  const all = [...everyWay.flatMap((name) => rounds[name]!), ...parts.flatMap(({ samples }) => samples)]
  return [
    {
      what: 'time, times the floor',
      measured: timesAsLong(rounds, oursName, floorName),
      limit: 1.3,
      unit: '×',
      atLeast: false,
    },
    {
      what: 'faster than an object per row',
      measured: timesAsLong(rounds, objectPerRowName, oursName),
      limit: 5,
      unit: '×',
      atLeast: true,
    },
    {
      what: 'first byte',
      measured: median(ours.map(({ firstByteMs }) => firstByteMs!)),
      limit: 100,
      unit: 'ms',
      atLeast: false,
    },
    memory('peak memory, one export at a time', highest(peaks(all))),
    memory('peak memory, two exports at once', small.keyInfoUnderExports.peakMb),
    ...(large
      ? [
          memory(
            `peak memory, ${large.movements.toLocaleString('en')} movements`,
            highest(peaks(large.samples)),
          ),
        ]
      : []),
    {
      what: 'key/info p99 under two exports',
      measured: small.keyInfoUnderExports.p99Ms,
      limit: 20,
      unit: 'ms',
      atLeast: false,
    },
    ...fullExports.flatMap(targetsOfFullExport),
  ]
}

function targetsOfFullExport({ store, rounds }: FullExports): Target[] {
  const name = fullExportName(store)
  const peaks = rounds[name]!.map(({ peakMb }) => peakMb)
  return [
    {
      what: `${name}, times the movements export`,
      measured: timesAsLong(rounds, name, oursName),
      limit: store === 'MinIO' ? 1.6 : 1.3,
      unit: '×',
      atLeast: false,
    },
    memory(`peak memory, ${name}`, highest(peaks), 300),
    ...(rounds[traExportName] ? targetsOfTra(rounds) : []),
  ]
}

function targetsOfTra(rounds: Rounds): Target[] {
  const peaks = rounds[traExportName]!.map(({ peakMb }) => peakMb)
  return [
    {
      what: `${traExportName}, times the floor`,
      measured: timesAsLong(rounds, traExportName, floorName),
      limit: 1.6,
      unit: '×',
      atLeast: false,
    },
    memory(`peak memory, ${traExportName}`, highest(peaks), 300),
  ]
}

function memory(what: string, measured: number | null, limit = 256): Target {
  return { what, measured, limit, unit: 'MB', atLeast: false }
}

export function isMet({ measured, limit, atLeast }: Target): boolean {
  return measured !== null && (atLeast ? measured >= limit : measured <= limit)
}

export function describeMachine(postgres: string): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 1e9),
    system: `${process.platform} ${process.arch}`,
    node: process.version,
    postgres,
  }
}

/** @returns the path of the file without its extension */
export function writeResults(results: Results, picture: string): string {
  const folder = fileURLToPath(new URL('./results/', import.meta.url))
  mkdirSync(folder, { recursive: true })
  const path = `${folder}movements-${results.movements}`
  const targets = targetsOf(results).map((target) => ({ ...target, met: isMet(target) }))
  writeFileSync(`${path}.json`, `${JSON.stringify({ ...results, targets }, null, 2)}\n`)
  writeFileSync(`${path}.svg`, picture)
  return path
}
