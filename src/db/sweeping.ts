/** What is past its time is looked for at once and then again and again, by one process at a time. */
import { setTimeout as delay } from 'node:timers/promises'
import type { ClientBase, Pool } from 'pg'
import { connect } from './pool.ts'

export interface Sweeping {
  database: Pool
  /** Of the lock that only one process holds. */
  name: string
  everyMs: number
  /** Whatever it leaves, because it fails or is stopped, is found by the next one. */
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

/** Nothing where another process sweeps. */
async function sweepAlone({ database, name, sweep }: Sweeping, stopped: AbortSignal): Promise<void> {
  const client = await connect(database)
  const ignore = () => {}
  client.on('error', ignore)
  let broken: Error | undefined
  try {
    if (!(await lock(client, name))) return
    await unlessStopped(stopped, sweep(stopped))
    await unlock(client, name)
  } catch (error) {
    // Closed, the connection gives the lock back.
    broken = error as Error
    throw error
  } finally {
    client.off('error', ignore)
    client.release(broken)
  }
}

/**
 * A store that has fallen silent holds a step up for minutes. Whoever stops the service waits for none of them: what it
 * is doing for others is to be handed back first.
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

/** False where another process has it. Held until `unlock` or the connection's end. */
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
