/** Runs every way in turn, several times, so that a machine that slows down slows them all. */
import { drain } from './drain.ts'
import { startUsage } from './measure.ts'
import { type OwnProcess, say } from './own-process.ts'
import type { Row, Sample, Transfer } from './rows.ts'

export interface Way {
  /** Its name in the table. */
  name: string
  /** The process whose memory and CPU time are measured; none for the floor, which renders nothing. */
  pid: number | undefined
  /** The URL of the response, to compare its content; none for the floor. */
  address: { url: string; headers: Record<string, string> } | undefined
  run(): Promise<Transfer>
}

/** Reads a response to its end. */
export function wayOver(name: string, from: OwnProcess, url: string, headers: Record<string, string>): Way {
  const run = () => Promise.race([drain(url, headers), from.failed])
  return { name, pid: from.pid, address: { url, headers }, run }
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

/** Runs a way once. */
export async function measure({ pid, run }: Way, databasePid: number): Promise<Sample> {
  const end = startUsage({ pid, databasePid })
  const before = process.cpuUsage()
  const transfer = await run()
  const { user, system } = process.cpuUsage(before)
  return { ...transfer, ...end(), clientCpuMs: (user + system) / 1e3 }
}
