/**
 * Runs a sweep for expired things at the start and then periodically: one of each kind at a time in all processes, and
 * one at a time in a process. Its lock belongs to a session, so it is taken on the server itself, not through a pooler.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { ClientBase, Pool } from 'pg'
import { connect } from './pool.ts'

/** The sweeps of a process, which take turns: each holds a connection for its lock as long as it runs. */
export class Sweeps {
  readonly #direct: Pool
  #turn: Promise<unknown> = Promise.resolve()

  /** @param direct connects to PostgreSQL itself */
  constructor(direct: Pool) {
    this.#direct = direct
  }

  /** Does nothing while another process sweeps. Rejects as `sweep` does. */
  run(name: string, sweep: (stopped: AbortSignal) => Promise<void>, stopped: AbortSignal): Promise<void> {
    const ended = this.#turn.then(() => sweepAlone(this.#direct, name, sweep, stopped))
    this.#turn = ended.catch(() => {})
    return ended
  }
}

export interface Sweeping {
  sweeps: Sweeps
  /** Key of the lock that one process at a time holds. */
  name: string
  everyMs: number
  /** If it fails or is stopped, the next one finds the rest. */
  sweep: (stopped: AbortSignal) => Promise<void>
  onError: (error: unknown) => void
}

export function startSweeping(parts: Sweeping): { close(): Promise<void> } {
  const closing = new AbortController()
  const running = (async () => {
    while (!closing.signal.aborted) {
      try {
        await parts.sweeps.run(parts.name, parts.sweep, closing.signal)
      } catch (error) {
        if (!closing.signal.aborted) parts.onError(error)
      }
      await delay(parts.everyMs, undefined, { signal: closing.signal }).catch(() => {})
    }
  })()
  return {
    close: () => {
      closing.abort()
      return running
    },
  }
}

async function sweepAlone(
  direct: Pool,
  name: string,
  sweep: (stopped: AbortSignal) => Promise<void>,
  stopped: AbortSignal,
): Promise<void> {
  stopped.throwIfAborted()
  const client = await connect(direct)
  let broken: Error | undefined
  try {
    if (!(await lock(client, name))) return
    await unlessStopped(stopped, sweep(stopped))
    await unlock(client, name)
  } catch (error) {
    // Closing the connection releases the lock.
    broken = error as Error
    throw error
  } finally {
    client.release(broken)
  }
}

/**
 * A store that does not respond delays a step for minutes. A stop of the service does not wait for it: exports in
 * progress must be requeued first.
 */
async function unlessStopped(stopped: AbortSignal, running: Promise<void>): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = () => reject(stopped.reason)
  stopped.addEventListener('abort', stop)
  if (stopped.aborted) stop()
  try {
    await Promise.race([running, promise])
  } finally {
    stopped.removeEventListener('abort', stop)
  }
}

/** False if another process holds it. Held until `unlock` or the end of the connection. */
async function lock(client: ClientBase, name: string): Promise<boolean> {
  const { rows } = await client.query<{ locked: boolean }>(
    `select pg_try_advisory_lock(hashtextextended('grandlivre ' || $1, 0)) as locked`,
    [name],
  )
  return rows[0]!.locked
}

async function unlock(client: ClientBase, name: string): Promise<void> {
  await client.query(`select pg_advisory_unlock(hashtextextended('grandlivre ' || $1, 0))`, [name])
}
