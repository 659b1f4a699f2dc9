/** How busy the machine was with other things while a bench ran. */
import { readFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { busyMs, ownCpuMs } from '../measure.ts'

export interface Load {
  /** Programs that run or wait for a processor or a disk: average of the last minute. */
  atStart: number
  /** Most of it is the bench. */
  atEnd: number
  /** Shares of the time of all processors; null if the system has no /proc. Those of other programs, */
  others: number | null
  /** and those that the host of a virtual machine has given to others. */
  stolen: number | null
}

/** From here on results are doubtful. */
const busy = { atStart: 0.5, others: 0.05, stolen: 0.02 }

/**
 * Starts to watch; the function it returns ends it.
 * @param databasePid the postmaster
 */
export function watchMachine(databasePid: number): () => Load {
  const [atStart = 0] = loadavg()
  const before = readTimes(databasePid)
  const started = performance.now()
  return () => {
    const [atEnd = 0] = loadavg()
    const after = readTimes(databasePid)
    if (!before || !after) return { atStart, atEnd, others: null, stolen: null }
    const allMs = (performance.now() - started) * availableParallelism()
    const ours = after.ours - before.ours
    return {
      atStart,
      atEnd,
      others: Math.max(0, after.busy - before.busy - ours) / allMs,
      stolen: (after.stolen - before.stolen) / allMs,
    }
  }
}

function readTimes(databasePid: number): { busy: number; stolen: number; ours: number } | undefined {
  if (process.platform !== 'linux') return undefined
  return { ...busyMs(readFileSync('/proc/stat', 'utf8')), ours: ownCpuMs(databasePid) }
}

/** What was measured, and a warning if the machine was busy. */
export function loadLines({ atStart, atEnd, others, stolen }: Load): string[] {
  const percent = (share: number) => `${(share * 100).toFixed(1)} %`
  const shares =
    others === null || stolen === null
      ? ''
      : `; other programs used ${percent(others)} of the processors, the host took ${percent(stolen)}`
  const line = `Load ${atStart.toFixed(2)} at the start, ${atEnd.toFixed(2)} at the end${shares}`
  return isBusy({ atStart, atEnd, others, stolen })
    ? [line, 'WARNING: the machine was busy with other things. Measure again before quoting any of this.']
    : [line]
}

export function isBusy({ atStart, others, stolen }: Load): boolean {
  return (
    atStart > busy.atStart * availableParallelism() ||
    (others ?? 0) > busy.others ||
    (stolen ?? 0) > busy.stolen
  )
}
