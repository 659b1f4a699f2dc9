import type { ServerResponse } from 'node:http'
import type { RequestSlots } from '../auth/request-slots.ts'

export type RequestSlot = ReturnType<typeof requestSlot>

/**
 * The slot of one request, held until its answer is over: ended, failed, or given up by the client.
 * @param of what the slots of the route are counted for: a folder, a partner in a folder, or a token
 * @param outgoing emits `close` once the answer is over
 * @param limit of these slots. Absent: that of all routes
 */
export function requestSlot(
  slots: RequestSlots,
  route: string,
  of: string,
  outgoing: ServerResponse,
  limit?: number,
) {
  const over = new AbortController()
  let held: (() => void) | undefined
  const release = () => {
    held?.()
    held = undefined
  }
  const hold = (taken: (() => void) | undefined) => {
    held = taken
    if (over.signal.aborted) release()
  }
  const end = () => {
    over.abort()
    release()
  }
  outgoing.once('close', end)
  // It may have closed already.
  if (outgoing.closed) end()
  return {
    /** Aborted when the answer is over. */
    over: over.signal,
    release,

    /** @throws {AppError} ERR-TOO-MANY-CONCURRENT-REQUEST if all slots are held, ERR-UNAVAILABLE */
    async acquire(): Promise<void> {
      hold(await slots.acquire(route, of, limit))
    },

    /**
     * Waits for a free slot, after the requests that wait already, unless the slot is held.
     * @throws {AppError} ERR-UNAVAILABLE
     */
    async acquireInTurn(): Promise<void> {
      if (!held) hold(await slots.acquireInTurn(route, of, over.signal, limit))
    },
  }
}
