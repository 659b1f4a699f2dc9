/** The picture of a run: of the ways to a year, with time, processor time and memory. */
import { type Bar, barsOf, type Line } from '../report/bars.ts'
import type { Machine } from '../report/results.ts'
import { namesOfCopies, oursName, type Row, type Sample } from '../rows.ts'

/** The memory that an export may take. */
const memoryTargetMb = 256

export function pictureOfYear(machine: Machine, rows: Row[]): string {
  const movements = rows.find(({ name }) => name === oursName)!.samples[0]!.rows!.toLocaleString('en')
  const printSeconds = (value: number) => `${value.toFixed(2)} s`
  return barsOf(`A year of ${movements} movements to a local client`, machine, rows.map(lineOf), [
    {
      title: 'Seconds',
      subtitle: 'until the last byte',
      bars: rows.map((row) => barOf(row, ({ ms }) => ms / 1000)),
      print: printSeconds,
    },
    {
      title: 'Processor seconds',
      subtitle: 'paler: those of the database',
      bars: rows.map(processorBar),
      print: printSeconds,
    },
    {
      title: 'Peak memory',
      subtitle: `dashed: ${memoryTargetMb} MB`,
      bars: rows.map((row) => barOf(row, ({ peakMb }) => peakMb)),
      print: (value) => `${value.toFixed(0)} MB`,
      mark: memoryTargetMb,
    },
  ])
}

function barOf({ samples }: Row, pick: (sample: Sample) => number | null): Bar | undefined {
  const values = samples.map(pick)
  return values.includes(null) ? undefined : { values: values as number[] }
}

/** A COPY to nowhere renders nothing: all of its time is the database's. */
function processorBar({ samples }: Row): Bar | undefined {
  const ofDatabase = samples.map(({ databaseCpuMs }) => databaseCpuMs)
  if (ofDatabase.includes(null)) return undefined
  const paler = (ofDatabase as number[]).map((ms) => ms / 1000)
  return { values: samples.map(({ cpuMs }, round) => (cpuMs ?? 0) / 1000 + paler[round]!), paler }
}

function lineOf({ name }: Row): Line {
  if (namesOfCopies.includes(name)) return { name, kind: 'floor' }
  return { name, kind: name.startsWith(oursName) ? 'ours' : 'peer' }
}
