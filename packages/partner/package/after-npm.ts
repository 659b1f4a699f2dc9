/** Restores the files of a folder when the npm with this process id, which packs it, has ended, however it ended. */
import { setTimeout } from 'node:timers/promises'
import { restore } from './in-place.ts'

const [npm, packed] = [Number(process.argv[2]), process.argv[3]!]
while (isAlive(npm)) await setTimeout(50)
restore(packed)

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
