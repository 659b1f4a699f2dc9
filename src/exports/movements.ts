/** A movements export as the main thread sees it: started, read chunk by chunk, cancelled. */
import type { Piscina } from 'piscina'
import { ChannelReader } from '../threads/channel.ts'
import { asAppError } from '../threads/pool.ts'
import type { MovementsHead, MovementsSummary, MovementsTask } from './thread.ts'

export type MovementsReader = ChannelReader<MovementsHead, MovementsSummary>

/** Starts an export in a thread. Whatever goes wrong, also with the thread itself, comes out of the reader. */
export function startMovements(threads: Piscina, task: Omit<MovementsTask, 'port'>): MovementsReader {
  const reader: MovementsReader = new ChannelReader()
  const port = reader.threadPort
  // No abort signal: Piscina gives a thread that runs a task with one nothing else to do, so that as many clients that
  // do not read as there are threads would stop all exports.
  threads
    .run({ ...task, port }, { name: 'exportMovements', transferList: [port] as never })
    .catch((error: unknown) => reader.fail(asAppError(error)))
  return reader
}
