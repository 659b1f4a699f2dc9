/**
 * Runs a sweep for expired things at the start and then periodically: one of each kind at a time in all processes, and
 * one at a time in a process. Its lock belongs to a session, so it is taken on the server itself, not through a pooler.
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
  /** Key of the lock that one process at a time holds. */
  name: string
  logged: Event
  /** If it fails or is stopped, the next one finds the rest. @returns how much it removed */
  run(stopped: AbortSignal): Promise<LogEvents[Event]>
}

/**
 * Returns what starts a sweep of this process. They take turns: each holds a connection for its lock as long as it runs.
 * @param direct connects to PostgreSQL itself
 */
export function sweepsInTurn(direct: Pool, log: Log) {
  let turn: Promise<unknown> = Promise.resolve()
  const inTurn = (sweep: () => Promise<void>): Promise<void> => {
    const ended = turn.then(sweep)
    turn = ended.catch(() => {})
    return ended
  }
  /** Sweeps at once and then every hour, until closed. Leaves out what another process sweeps at that moment. */
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

/** Repeats a part of a sweep until it finds nothing more: undefined. @returns the sum of what the parts removed */
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

/** If the sweep fails, the end of the connection releases its lock. */
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
 * A store that does not respond delays a step for minutes. A stop of the service does not wait for it: exports in
 * progress must be requeued first.
 */
async function unlessStopped(stopped: AbortSignal, running: Promise<void>): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>()
  using _heard = addAbortListener(stopped, () => reject(stopped.reason))
  await Promise.race([running, promise])
}
