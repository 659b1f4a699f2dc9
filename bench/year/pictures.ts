/** The pictures of a run: of the ways to a year, with time, processor time and memory. */
import { type Bar, barsOf } from '../report/bars.ts'
import type { Machine } from '../report/results.ts'
import { floorName, oursName, type Row, type Sample } from '../rows.ts'
import { highest } from '../statistics.ts'

/** The memory that an export may take. */
const memoryTargetMb = 256

/** @returns by the end of their names: `-time` for the first page, and the whole one */
export function picturesOf({
  machine,
  sections,
}: {
  machine: Machine
  sections: Record<string, Row[]>
}): Record<string, string> {
  const rows = sections['a year']!
  const movements = rows.find(({ name }) => name === oursName)!.samples[0]!.rows!.toLocaleString('en')
  const seconds = {
    title: 'Seconds until the last byte (shorter is better)',
    bars: barsFor(rows, ({ ms }) => ms / 1000),
    print: (value: number) => `${value.toFixed(2)} s`,
  }
  const processor = {
    title: 'Processor time in seconds: of the process that answers, and, lighter, of the database',
    bars: rows.flatMap((row) => processorBar(row)),
    print: (value: number) => `${value.toFixed(2)} s`,
  }
  const memory = {
    title: 'Peak memory of the process that answers',
    bars: barsFor(rows, ({ peakMb }) => peakMb),
    print: (value: number) => `${value.toFixed(0)} MB`,
    mark: { value: memoryTargetMb, text: `${memoryTargetMb} MB` },
  }
  const title = `A year of ${movements} movements to a local client`
  return {
    '-time': barsOf(title, machine, [seconds]),
    '': barsOf(title, machine, [seconds, processor, memory]),
  }
}

function barsFor(rows: Row[], pick: (sample: Sample) => number | null): Bar[] {
  return rows.flatMap(({ name, samples }): Bar[] => {
    const values = samples.map(pick)
    return values.includes(null) ? [] : [{ name, kind: kindOf(name), values: values as number[] }]
  })
}

/** The floor renders nothing: all of its time is the database's. */
function processorBar({ name, samples }: Row): Bar[] {
  const ofDatabase = samples.map(({ databaseCpuMs }) => databaseCpuMs)
  if (highest(ofDatabase) === null) return []
  const lighter = (ofDatabase as number[]).map((ms) => ms / 1000)
  const values = samples.map(({ cpuMs }, round) => (cpuMs ?? 0) / 1000 + lighter[round]!)
  return [{ name, kind: kindOf(name), values, lighter }]
}

function kindOf(name: string): Bar['kind'] {
  if (name === floorName) return 'floor'
  return name.startsWith(oursName) ? 'ours' : 'peer'
}
