/** The resources that processes have used, by process id: from /proc, so on Linux only. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'

/** /proc counts CPU time in ticks, which are hundredths of a second on every Linux that Node supports. */
const msPerTick = 10

/** Null if the system has no /proc, or no such process. */
export interface Usage {
  /** User and system time of the process that answers, and of the processes that it started and that have ended. */
  cpuMs: number | null
  /** User and system time, all processes of PostgreSQL. */
  databaseCpuMs: number | null
  /** The peak resident memory of the process that answers, in MB of 1,000,000 bytes. */
  peakMb: number | null
  /** The same of the largest process that it started, looked up every 20 ms; null if there was none. */
  childPeakMb: number | null
}

const lookUpMs = 20

export interface Measured {
  /** None for the floor, which renders no response. */
  pid: number | undefined
  /** The postmaster. */
  databasePid: number
}

const hasProc = process.platform === 'linux'

/** Starts a measurement; the function it returns ends it. */
export function startUsage({ pid, databasePid }: Measured): () => Usage {
  if (!hasProc) return () => ({ cpuMs: null, databaseCpuMs: null, peakMb: null, childPeakMb: null })
  if (pid !== undefined && !existsSync(`/proc/${pid}`))
    throw new Error(`Process ${pid}, which should be measured, is gone`)
  // Resets the peak to the memory resident now.
  if (pid !== undefined) writeFileSync(`/proc/${pid}/clear_refs`, '5')
  const cpuBefore = pid === undefined ? 0 : withEndedCpuMsOf(pid)
  const databaseBefore = treeCpuMsOf(databasePid)
  const children = pid === undefined ? undefined : watchChildren(pid)
  return () => ({
    cpuMs: pid === undefined ? null : withEndedCpuMsOf(pid) - cpuBefore,
    databaseCpuMs: treeCpuMsOf(databasePid) - databaseBefore,
    peakMb: pid === undefined ? null : peakMbOf(pid),
    childPeakMb: children?.() ?? null,
  })
}

/** The function it returns ends the watch: with the highest peak in MB, undefined if there was no child. */
function watchChildren(pid: number): () => number | undefined {
  let peakMb: number | undefined
  const timer = setInterval(() => {
    for (const child of descendantsOf(pid))
      peakMb = Math.max(peakMb ?? 0, unlessGone(() => peakMbOf(child)) ?? 0)
  }, lookUpMs)
  return () => {
    clearInterval(timer)
    return peakMb
  }
}

/** A child may belong to any thread of its parent. */
function descendantsOf(pid: number): number[] {
  const threads = unlessGone(() => readdirSync(`/proc/${pid}/task`)) ?? []
  const children = threads.flatMap((thread) => unlessGone(() => childrenOf(pid, thread)) ?? [])
  return children.flatMap((child) => [child, ...descendantsOf(child)])
}

function childrenOf(pid: number, thread: number | string): number[] {
  const text = readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8')
  return text.trim().split(' ').filter(Boolean).map(Number)
}

/** The process that started another; undefined if the system has no /proc. */
export function parentOf(pid: number): number {
  return hasProc ? statOf(pid)[1]! : 0
}

function cpuMsOf(pid: number): number {
  const fields = statOf(pid)
  return (fields[11]! + fields[12]!) * msPerTick
}

/** Children that have ended count towards the process that waited for them: backends towards the postmaster. */
function withEndedCpuMsOf(pid: number): number {
  const fields = statOf(pid)
  return cpuMsOf(pid) + (fields[13]! + fields[14]!) * msPerTick
}

function treeCpuMsOf(pid: number): number {
  const running = childrenOf(pid, pid).map((child) => unlessGone(() => cpuMsOf(child)) ?? 0)
  return running.reduce((sum, ms) => sum + ms, withEndedCpuMsOf(pid))
}

/** Of this process, of all that it has started, and of PostgreSQL. */
export function ownCpuMs(databasePid: number): number {
  const running = descendantsOf(process.pid).map((pid) => unlessGone(() => withEndedCpuMsOf(pid)) ?? 0)
  const database = unlessGone(() => treeCpuMsOf(databasePid)) ?? 0
  return running.reduce((sum, ms) => sum + ms, withEndedCpuMsOf(process.pid)) + database
}

/**
 * Of all processors since the machine started.
 * @param stat the text of /proc/stat: its first line has user, nice, system, idle, iowait, irq, softirq, steal
 */
export function busyMs(stat: string): { busy: number; stolen: number } {
  const [user, nice, system, , , irq, softirq, steal] = stat
    .slice('cpu '.length, stat.indexOf('\n'))
    .trim()
    .split(' ')
    .map((ticks) => Number(ticks) * msPerTick)
  return { busy: user! + nice! + system! + irq! + softirq!, stolen: steal! }
}

/** Undefined if the process has ended meanwhile. */
function unlessGone<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
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
  // A process that has ended, but whose parent has not noticed, has no memory.
  return (Number(kilobytes ?? 0) * 1024) / 1e6
}
