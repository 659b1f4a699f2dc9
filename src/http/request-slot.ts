import type { ServerResponse } from 'node:http'
import type { RequestSlots } from '../auth/request-slots.ts'

export type RequestSlot = ReturnType<typeof requestSlot>

/**
 * The slot of one request, held until its answer is over: ended, failed, or given up by the client.
 * @param outgoing emits `close` once the answer is over
 */
export function requestSlot(slots: RequestSlots, route: string, folderId: string, outgoing: ServerResponse) {
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
      hold(await slots.acquire(route, folderId))
    },

    /**
     * Waits for a free slot, after the requests that wait already, unless the slot is held.
     * @throws {AppError} ERR-UNAVAILABLE
     */
    async acquireInTurn(): Promise<void> {
      if (!held) hold(await slots.acquireInTurn(route, folderId, over.signal))
    },
  }
}
