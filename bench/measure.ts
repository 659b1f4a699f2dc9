/** What a process has used, by its id: from /proc, so on Linux only. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

/** /proc counts CPU time in ticks, which are hundredths of a second on every Linux that Node runs on. */
const ticksPerSecond = 100

/** Null where the system has no /proc. */
export interface Usage {
  /** User and system, all threads. */
  cpuSeconds: number | null
  /** The most resident memory at any moment, in MB of 1,000,000 bytes. */
  peakMb: number | null
}

export const hasProc = process.platform === 'linux'

/** Starts a measurement; the function it returns ends it. */
export function startUsage(pid: number): () => Usage {
  if (!hasProc) return () => ({ cpuSeconds: null, peakMb: null })
  if (!existsSync(`/proc/${pid}`)) throw new Error(`Process ${pid}, which was to be measured, is gone`)
  // Resets the peak to what is resident now.
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
  const before = cpuSecondsOf(pid)
  return () => ({ cpuSeconds: cpuSecondsOf(pid) - before, peakMb: peakMbOf(pid) })
}

function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name of the program is in parentheses and may hold blanks; fields 14 and 15 are counted from its end.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

function peakMbOf(pid: number): number {
  const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return (Number(kilobytes) * 1024) / 1e6
}
