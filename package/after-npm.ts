/** Restores the checkout's files when the npm with this process id has ended, however it ended. */
import { resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { restore } from './in-place.ts'

const npm = Number(process.argv[2])
while (isAlive(npm)) await setTimeout(50)
restore(resolve(import.meta.dirname, '..'))

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
