/** Every way in turn, several times over, so that a machine that slows down slows them all. */
import type { Usage } from './measure.ts'
import { startUsage } from './measure.ts'
import type { ReportProgress } from './progress.ts'
import { median } from './statistics.ts'
import type { Transfer, Way } from './ways.ts'

/** What one way took in one round. */
export interface Sample extends Transfer, Usage {
  /** Of the bench itself, which reads the answer: part of the load on the machine. */
  clientCpuSeconds: number
}

/** Samples by the name of the way, one per round. */
export type Rounds = Record<string, Sample[]>

export async function runRounds(ways: Way[], rounds: number, progress: ReportProgress): Promise<Rounds> {
  const samples: Rounds = Object.fromEntries(ways.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const [index, way] of ways.entries()) {
      progress(`round ${round + 1} of ${rounds}: ${way.name}`, index / ways.length)
      samples[way.name]!.push(await measure(way))
    }
  }
  return samples
}

export async function measure(way: Pick<Way, 'pid' | 'run'>): Promise<Sample> {
  const end = way.pid === undefined ? undefined : startUsage(way.pid)
  const before = process.cpuUsage()
  const transfer = await way.run()
  const { user, system } = process.cpuUsage(before)
  const clientCpuSeconds = (user + system) / 1e6
  return { ...transfer, clientCpuSeconds, ...(end?.() ?? { cpuSeconds: null, peakMb: null }) }
}

/** How many times as long one way takes as another: of each round, then the median. */
export function timesAsLong(rounds: Rounds, way: string, other: string): number {
  return median(rounds[way]!.map(({ seconds }, round) => seconds / rounds[other]![round]!.seconds))
}
