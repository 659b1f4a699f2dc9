/** The resources that processes have used, by process id: from /proc, so on Linux only. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

/** /proc counts CPU time in ticks, which are hundredths of a second on every Linux that Node supports. */
const msPerTick = 10

/** Null if the system has no /proc, or no such process. */
export interface Usage {
  /** User and system time, all threads of the process that answers. */
  cpuMs: number | null
  /** User and system time, all processes of PostgreSQL. */
  databaseCpuMs: number | null
  /** The peak resident memory of the process that answers, in MB of 1,000,000 bytes. */
  peakMb: number | null
}

export interface Measured {
  /** None for the floor, which renders no response. */
  pid: number | undefined
  /** The postmaster. */
  databasePid: number
}

const hasProc = process.platform === 'linux'

/** Starts a measurement; the function it returns ends it. */
export function startUsage({ pid, databasePid }: Measured): () => Usage {
  if (!hasProc) return () => ({ cpuMs: null, databaseCpuMs: null, peakMb: null })
  if (pid !== undefined && !existsSync(`/proc/${pid}`))
    throw new Error(`Process ${pid}, which should be measured, is gone`)
  // Resets the peak to the memory resident now.
  if (pid !== undefined) writeFileSync(`/proc/${pid}/clear_refs`, '5')
  const cpuBefore = pid === undefined ? 0 : cpuMsOf(pid)
  const databaseBefore = treeCpuMsOf(databasePid)
  return () => ({
    cpuMs: pid === undefined ? null : cpuMsOf(pid) - cpuBefore,
    databaseCpuMs: treeCpuMsOf(databasePid) - databaseBefore,
    peakMb: pid === undefined ? null : peakMbOf(pid),
  })
}

/** The process that started another; undefined if the system has no /proc. */
export function parentOf(pid: number): number {
  return hasProc ? statOf(pid)[1]! : 0
}

function cpuMsOf(pid: number): number {
  const fields = statOf(pid)
  return (fields[11]! + fields[12]!) * msPerTick
}

/**
 * Children that have ended count towards the process that waited for them: backends towards the postmaster.
 */
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

/**
 * The fields of /proc/PID/stat from the third on: the program's name before it is in parentheses and may
 * contain spaces.
 */
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
