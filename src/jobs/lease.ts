/** Says again and again that a process is alive and has what it has, until it ends or is told that it has lost it. */
import { setTimeout as delay } from 'node:timers/promises'

/**
 * @param renew gives false where somebody else has it
 * @param lose called once then, and no more is said
 * @param everyMs how often it is said
 */
export function holdLease(
  renew: () => Promise<boolean>,
  lose: () => void,
  everyMs: number,
): { end(): Promise<void> } {
  const ended = new AbortController()
  const renewing = (async () => {
    for (;;) {
      await delay(everyMs, undefined, { signal: ended.signal }).catch(() => {})
      if (ended.signal.aborted) return
      try {
        if (!(await renew())) return lose()
      } catch {
        // The database is away. What is worked on asks it too and can say more, and so does the queue.
      }
    }
  })()
  return {
    end: () => {
      ended.abort()
      return renewing
    },
  }
}
