/** Keeps two syncs from writing one file: `<file>.lock` names the process that does. */
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { Failure } from '../../../../../terminal/src/command-errors.ts'
import { isRunning } from '../../running-process.ts'

/** A lock without a name that is older was cut short by a crash. */
const writingMs = 10_000

interface Holder {
  pid: number
  host: string
}

/**
 * A lock that a killed process left is taken over.
 * @returns gives the lock back
 * @throws {Failure} if another process holds it
 */
export function lockFile(target: string): () => void {
  const path = `${target}.lock`
  const mine: Holder = { pid: process.pid, host: hostname() }
  for (let attempt = 1; ; attempt += 1) {
    try {
      writeFileSync(path, JSON.stringify(mine), { flag: 'wx' })
      return () => rmSync(path, { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const holder = holderOf(path)
    if (attempt > 1 || (holder ? mayHold(holder, mine) : isFresh(path)))
      throw new Failure(
        `Another sync${holder ? `, process ${holder.pid} on ${holder.host},` : ''} writes ${target}`,
        `Wait for its end. If there is none, delete ${path}.`,
      )
    rmSync(path, { force: true })
  }
}

function holderOf(path: string): Holder | undefined {
  try {
    const holder = JSON.parse(readFileSync(path, 'utf8'))
    return typeof holder?.pid === 'number' && typeof holder.host === 'string' ? holder : undefined
  } catch {
    // Gone meanwhile, being written, or cut short by a crash.
    return undefined
  }
}

/** A process that has just created its lock may not have written its name yet. */
function isFresh(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat !== undefined && Date.now() - stat.mtimeMs < writingMs
}

/** Of a process on another machine nothing is known, so it counts as running. */
function mayHold(holder: Holder, mine: Holder): boolean {
  if (holder.host !== mine.host) return true
  // A container gives its first process the same number each time.
  if (holder.pid === mine.pid) return false
  return isRunning(holder.pid)
}
