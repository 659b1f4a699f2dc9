/** A movements export as the main thread sees it: started, read chunk by chunk, cancelled. */
import type { Piscina } from 'piscina'
import { limits } from '../config.ts'
import { ChannelReader } from '../threads/channel.ts'
import { asAppError } from '../threads/pool.ts'
import type { MovementsHead, MovementsSummary, MovementsTask } from './thread.ts'

export type MovementsReader = ChannelReader<MovementsHead, MovementsSummary>

/** Starts an export in a thread. Whatever goes wrong, also with the thread itself, comes out of the reader. */
export function startMovements(threads: Piscina, task: Omit<MovementsTask, 'port'>): MovementsReader {
  const reader: MovementsReader = new ChannelReader()
  const port = reader.threadPort
  const terminate = new AbortController()
  let grace: NodeJS.Timeout | undefined
  reader.onCancel = () => {
    // The message ends an export within milliseconds. A thread that does not hear it is stuck, and is ended.
    grace = setTimeout(() => terminate.abort(), limits.cancelGraceMs)
  }
  threads
    .run(
      { ...task, port },
      { name: 'exportMovements', transferList: [port] as never, signal: terminate.signal },
    )
    .catch((error: unknown) => reader.fail(asAppError(error)))
    .finally(() => clearTimeout(grace))
  return reader
}
