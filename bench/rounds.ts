/** Every way in turn, several times over, so that a machine that slows down slows them all. */
import { startUsage, type Usage } from './measure.ts'
import { say } from './own-process.ts'
import { median } from './statistics.ts'
import type { Transfer, Way } from './ways.ts'

/** What one way took in one round. */
export interface Sample extends Transfer, Usage {
  /** Of the bench itself, which reads the answer: part of the load on the machine. */
  clientCpuMs: number
}

/** A line of the table. */
export interface Row {
  name: string
  /** One per round. */
  samples: Sample[]
  /** Of a request that was sent many times; `samples` then has one, with the median and what all used together. */
  p99Ms?: number
}

/** @returns a row for each way, in their order */
export async function runRounds(ways: Way[], rounds: number, databasePid: number): Promise<Row[]> {
  const rows = ways.map(({ name }): Row => ({ name, samples: [] }))
  for (let round = 1; round <= rounds; round++) {
    for (const [index, way] of ways.entries()) {
      say(`round ${round} of ${rounds}: ${way.name}`)
      rows[index]!.samples.push(await measure(way, databasePid))
    }
  }
  return rows
}

async function measure({ pid, run }: Way, databasePid: number): Promise<Sample> {
  const end = startUsage({ pid, databasePid })
  const before = process.cpuUsage()
  const transfer = await run()
  const { user, system } = process.cpuUsage(before)
  return { ...transfer, ...end(), clientCpuMs: (user + system) / 1e3 }
}

export function medianMs({ samples }: Row): number {
  return median(samples.map(({ ms }) => ms))
}

/** How many times as long as another, which took turns with it: of each round, then the median. */
export function timesAsLong(row: Row, other: Row): number {
  return median(row.samples.map(({ ms }, round) => ms / other.samples[round]!.ms))
}
