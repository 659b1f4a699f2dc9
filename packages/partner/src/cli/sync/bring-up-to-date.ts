/** Brings a copy to the present state of its ledger: with what changed since its cursor, or in full. */

import { countText, secondsText } from '../../../../terminal/src/amounts.ts'
import { type Copying, isExpired } from './folder.ts'
import { readInFull } from './read-in-full.ts'
import { type Poll, type Settled, settle } from './settle.ts'
import type { State } from './targets/target.ts'

export interface Step {
  /** Whether the folder was read in full. */
  inFull: boolean
  /** The cursor before, if there was a copy. */
  since: string | null
  cursor: string
  /** Entries and movements that came, and entries that were removed or replaced; null where the target cannot tell. */
  entries: number
  movements: number
  removed: number | null
  ms: number
}

/**
 * @param poll an answer that says that something has changed; without it every part of the folder is asked
 * @param state of the copy; undefined if there is none
 */
export async function bringUpToDate(copying: Copying, state: State | undefined, poll?: Poll): Promise<Step> {
  const { folder, target, terminal } = copying
  const started = performance.now()
  const since = state?.cursor ?? null
  const stepOf = (settled: Settled, inFull: boolean): Step => {
    const { cursor, entries, movements, removed } = settled
    return { inFull, since, cursor, entries, movements, removed, ms: performance.now() - started }
  }
  if (state && (await target.state('next')) === undefined) {
    try {
      return stepOf(await target.change('copy', (change) => settle(folder, change, state, poll)), false)
    } catch (error) {
      if (!isExpired(error)) throw error
      terminal.note(`${(error as Error).message}. The folder is read in full again, beside the copy.`)
    }
  }
  const full = await readInFull(copying).catch(async (error: unknown) => {
    if (!isExpired(error)) throw error
    // What an interrupted run has read is too old to continue from.
    terminal.note(`${(error as Error).message}. What was read before is read again.`)
    await target.clearNext()
    return readInFull(copying)
  })
  return stepOf(full, true)
}

export function stepText(step: Step): string {
  const { cursor, ms } = step
  return `${whatCame(step)}; ${ms < 1000 ? `${Math.round(ms)} ms` : secondsText(ms)}; cursor ${cursor}`
}

function whatCame({ inFull, entries, movements, removed }: Step): string {
  const came = `${countText(entries)} entries, ${countText(movements)} movements`
  if (inFull) return `read in full: ${came}`
  if (removed === null) return `changed: ${came}`
  return entries + removed === 0
    ? 'no entry changed'
    : `changed: ${came}; ${countText(removed)} entries replaced or removed`
}
