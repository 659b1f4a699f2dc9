/** Runs a sweep for expired things at the start and then periodically, in one process at a time. */
import { setTimeout as delay } from 'node:timers/promises'
import type { ClientBase, Pool } from 'pg'
import { connect } from './pool.ts'

export interface Sweeping {
  database: Pool
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
        await sweepAlone(parts, closing.signal)
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

/** Does nothing while another process sweeps. */
async function sweepAlone({ database, name, sweep }: Sweeping, stopped: AbortSignal): Promise<void> {
  const client = await connect(database)
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
