/**
 * A process beside the tests that cleans up when they are interrupted or killed. It waits until its standard
 * input ends, which happens when the process that holds the other end does; then it kills every process that
 * has the folder of its first argument on its command line or in its environment, and removes the folder.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

const folder = process.argv[2]
if (folder === undefined) throw new Error('Name the folder')
process.stdin.resume()
process.stdin.on('end', () => void cleanUp(folder))

async function cleanUp(path: string): Promise<void> {
  for (let found = processesOf(path); found.length > 0; found = processesOf(path)) {
    for (const { pid, text } of found) end(pid, text)
    await delay(100)
  }
  unmountBelow(path)
  await rm(path, { recursive: true, force: true })
}

/** The folder's name is random and identifies it; its path may be written in several ways. */
function processesOf(path: string): { pid: number; text: string }[] {
  const all = process.platform === 'linux' ? processesOfLinux() : processesOfMac()
  return all.filter(({ pid, text }) => pid !== process.pid && text.includes(basename(path)))
}

function processesOfLinux(): { pid: number; text: string }[] {
  const read = (path: string): string => {
    try {
      return readFileSync(path, 'latin1')
    } catch {
      // The process has ended, or belongs to another user.
      return ''
    }
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => ({ pid: Number(pid), text: read(`/proc/${pid}/cmdline`) + read(`/proc/${pid}/environ`) }))
}

function processesOfMac(): { pid: number; text: string }[] {
  const lines = execFileSync('/bin/ps', ['-AEww', '-o', 'pid=,command='], { encoding: 'utf8' }).split('\n')
  return lines.map((line) => ({ pid: Number.parseInt(line, 10), text: line }))
}

function end(pid: number, text: string): void {
  try {
    // SIGKILL would make PostgreSQL leave a shared memory segment; SIGQUIT is as fast and leaves none.
    process.kill(pid, text.includes('/bin/postgres') ? 'SIGQUIT' : 'SIGKILL')
  } catch {
    // It has ended.
  }
}

/** The small disks of some tests. */
function unmountBelow(path: string): void {
  if (process.platform !== 'linux') return
  for (const line of readFileSync('/proc/mounts', 'utf8').split('\n')) {
    const point = line.split(' ')[1] ?? ''
    if (point.startsWith(`${path}/`)) execFileSync('umount', ['-l', point])
  }
}
