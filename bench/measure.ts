/** What processes have used, by their ids: from /proc, so on Linux only. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

/** /proc counts CPU time in ticks, which are hundredths of a second on every Linux that Node runs on. */
const msPerTick = 10

/** Null where the system has no /proc, or there is no such process. */
export interface Usage {
  /** User and system, all threads of the process that answers. */
  cpuMs: number | null
  /** User and system, all processes of PostgreSQL. */
  databaseCpuMs: number | null
  /** The most resident memory of the process that answers at any moment, in MB of 1,000,000 bytes. */
  peakMb: number | null
}

export interface Measured {
  /** None for the floor, which makes no answer. */
  pid: number | undefined
  /** The postmaster. */
  databasePid: number
}

const hasProc = process.platform === 'linux'

/** Starts a measurement; the function it returns ends it. */
export function startUsage({ pid, databasePid }: Measured): () => Usage {
  if (!hasProc) return () => ({ cpuMs: null, databaseCpuMs: null, peakMb: null })
  if (pid !== undefined && !existsSync(`/proc/${pid}`))
    throw new Error(`Process ${pid}, which was to be measured, is gone`)
  // Resets the peak to what is resident now.
  if (pid !== undefined) writeFileSync(`/proc/${pid}/clear_refs`, '5')
  const cpuBefore = pid === undefined ? 0 : cpuMsOf(pid)
  const databaseBefore = treeCpuMsOf(databasePid)
  return () => ({
    cpuMs: pid === undefined ? null : cpuMsOf(pid) - cpuBefore,
    databaseCpuMs: treeCpuMsOf(databasePid) - databaseBefore,
    peakMb: pid === undefined ? null : peakMbOf(pid),
  })
}

/** The process that started another one; undefined where the system has no /proc. */
export function parentOf(pid: number): number {
  return hasProc ? statOf(pid)[1]! : 0
}

function cpuMsOf(pid: number): number {
  const fields = statOf(pid)
  return (fields[11]! + fields[12]!) * msPerTick
}

/** Children that have ended are counted with the process that waited for them: a backend with the postmaster. */
function treeCpuMsOf(pid: number): number {
  const fields = statOf(pid)
  const ended = (fields[13]! + fields[14]!) * msPerTick
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean)
  return children.reduce((sum, child) => sum + cpuMsUnlessGone(Number(child)), ended + cpuMsOf(pid))
}

function cpuMsUnlessGone(pid: number): number {
  try {
    return cpuMsOf(pid)
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return 0
    throw error
  }
}

/** From the third field of /proc/PID/stat on: the name of the program before it is in parentheses and may hold blanks. */
function statOf(pid: number): number[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
}

function peakMbOf(pid: number): number {
  const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return (Number(kilobytes) * 1024) / 1e6
}
