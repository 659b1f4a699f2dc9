/**
 * Runs the sweeps that remove expired things: once at the start, then periodically. Only one process at a time runs a
 * sweep of a given kind, and a process runs one sweep at a time. The lock of a sweep belongs to a session, so it is
 * taken on the server itself, not through a pooler.
 */
import { addAbortListener } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Pool } from 'pg'
import { limits } from '../config.ts'
import type { Log, LogEvents } from '../log.ts'
import { onConnection } from './pool.ts'
import { tryLocks, unlock } from './statement.ts'

/** The log event of a sweep that removed something. */
type SweptEvent = Exclude<Extract<keyof LogEvents, `retention.${string}`>, 'retention.error'>

interface Sweep<Event extends SweptEvent> {
  /** Key of the lock: only the process that holds it runs this sweep. */
  name: string
  logged: Event
  /**
   * Removes what has expired. If it fails or is stopped, the next run removes the rest. @returns how much it removed
   */
  run(stopped: AbortSignal): Promise<LogEvents[Event]>
}

/**
 * Returns a function that starts a sweep. The sweeps of this process take turns, because each holds a connection for
 * its lock while it runs.
 * @param direct connects to PostgreSQL itself
 */
export function sweepsInTurn(direct: Pool, log: Log) {
  let turn: Promise<unknown> = Promise.resolve()
  const inTurn = (sweep: () => Promise<void>): Promise<void> => {
    const ended = turn.then(sweep)
    turn = ended.catch(() => {})
    return ended
  }
  /** Sweeps at once and then every hour, until closed. Skips a run if another process is running the same sweep. */
  return <Event extends SweptEvent>({ name, logged, run }: Sweep<Event>): { close(): Promise<void> } => {
    const closing = new AbortController()
    const { signal } = closing
    const sweep = async () => {
      const swept = await run(signal)
      if (Object.values(swept).some((count) => count > 0)) log(logged, swept)
    }
    const running = (async () => {
      while (!signal.aborted) {
        try {
          await inTurn(() => sweepAlone(direct, name, sweep, signal))
        } catch (error) {
          if (!signal.aborted) log('retention.error', { error })
        }
        await delay(limits.retentionEveryMs, undefined, { signal }).catch(() => {})
      }
    })()
    return {
      close: () => {
        closing.abort()
        return running
      },
    }
  }
}

/**
 * Repeats one part of a sweep until it returns undefined: nothing is left. @returns the sum of what the parts removed
 */
export async function inParts(
  stopped: AbortSignal | undefined,
  part: () => Promise<number | undefined>,
): Promise<number> {
  let removed = 0
  for (;;) {
    stopped?.throwIfAborted()
    const more = await part()
    if (more === undefined) return removed
    removed += more
  }
}

/** Sweeps while holding the lock. If the sweep fails, its connection ends, which releases the lock. */
async function sweepAlone(
  direct: Pool,
  name: string,
  sweep: () => Promise<void>,
  stopped: AbortSignal,
): Promise<void> {
  stopped.throwIfAborted()
  await onConnection(direct, async (client) => {
    const locked = await tryLocks(client, [`grandlivre ${name}`])
    // Another process holds it.
    if (locked.length === 0) return
    await unlessStopped(stopped, sweep())
    await unlock(client, locked)
  })
}

/**
 * Waits for a sweep, but no longer than until the service stops. A store that does not respond delays a step for
 * minutes, and a stopping service must first requeue the exports in progress.
 */
async function unlessStopped(stopped: AbortSignal, running: Promise<void>): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>()
  using _heard = addAbortListener(stopped, () => reject(stopped.reason))
  await Promise.race([running, promise])
}
