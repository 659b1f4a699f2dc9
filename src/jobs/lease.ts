/** Renews a claim at regular intervals, until it ends or is lost. */
import { setTimeout as delay } from 'node:timers/promises'

/**
 * @param renew resolves to false if the claim is lost
 * @param lose called once when the claim is lost; renewing stops then
 * @param everyMs interval between renewals
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
        // The database is unreachable. The attempt and the queue notice that too, and report it in more detail.
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
