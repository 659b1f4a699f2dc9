/** Runs every way in turn, several times, so that a machine that slows down slows them all. */
import { startUsage, type Usage } from './measure.ts'
import { say } from './own-process.ts'
import { median } from './statistics.ts'
import type { Transfer, Way } from './ways.ts'

/** What one way consumed in one round. */
export interface Sample extends Transfer, Usage {
  /** CPU time of the bench itself, which reads the response: part of the load on the machine. */
  clientCpuMs: number
}

/** A line of the table. */
export interface Row {
  name: string
  /** One per round. */
  samples: Sample[]
  /** Of a request sent many times; `samples` then has one element, with medians and averages of all. */
  p99Ms?: number
}

/** @returns a row per way, in their order */
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

/** The ratio to another way that took turns with it: per round, then the median. */
export function timesAsLong(row: Row, other: Row): number {
  return median(row.samples.map(({ ms }, round) => ms / other.samples[round]!.ms))
}
