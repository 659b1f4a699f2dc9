/** The record of all failovers so far, of all runs. */
import { readFile, writeFile } from 'node:fs/promises'
import { type Fault, faults } from './findings.ts'

export interface Failover {
  at: string
  seed: number
  kind: string
  /** Acknowledged commits that the database lacks afterwards. */
  lost: number
  /** The longest pause between two acknowledged commits. */
  secondsWithoutWrites: number
  found: Partial<Record<Fault, number>>
  details: string[]
}

export async function record(path: string, failover: Failover): Promise<void> {
  const text = await readFile(path, 'utf8').catch(() => undefined)
  const failovers = [...(text === undefined ? [] : (JSON.parse(text).failovers as Failover[])), failover]
  const count = failovers.length
  const summary = Object.fromEntries(
    faults.map((fault) => [fault, failovers.reduce((sum, { found }) => sum + (found[fault] ?? 0), 0)]),
  )
  const seconds: Record<string, string> = {}
  for (const kind of new Set(failovers.map((each) => each.kind))) {
    const all = failovers.filter((each) => each.kind === kind).map((each) => each.secondsWithoutWrites)
    seconds[kind] = `${Math.min(...all)} to ${Math.max(...all)} (${all.length})`
  }
  // With a probability of 95 %, an event that did not happen in n cases happens in at most 3/n of them.
  const percent = Math.min(100, 300 / count).toFixed(1)
  const bound = `what was found in none of ${count} happens in at most ${percent} % of failovers, with 95 % confidence`
  await writeFile(
    path,
    `${JSON.stringify({ count, bound, summary, secondsWithoutWrites: seconds, failovers }, null, 2)}\n`,
  )
}
