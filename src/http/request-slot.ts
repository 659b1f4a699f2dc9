import type { ServerResponse } from 'node:http'
import type { RequestSlots } from '../auth/request-slots.ts'

export type RequestSlot = ReturnType<typeof requestSlot>

/**
 * Runs the function once the answer is over: ended, failed, or given up by the client. If the answer is over already,
 * the function runs at once.
 */
export function whenOver(outgoing: ServerResponse, run: () => void): void {
  outgoing.once('close', run)
  if (outgoing.closed) run()
}

/**
 * The slot of one request, held until its answer is over.
 * @param holder the folder, the partner in a folder, or the token for which the route counts slots
 * @param limit how many slots the holder has; if absent, the limit of all routes applies
 */
export function requestSlot(
  slots: RequestSlots,
  route: string,
  holder: string,
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
  whenOver(outgoing, () => {
    over.abort()
    release()
  })
  return {
    /** Aborted when the answer is over. */
    over: over.signal,
    release,

    /** @throws {AppError} ERR-TOO-MANY-CONCURRENT-REQUEST if all slots are held, ERR-UNAVAILABLE */
    async acquire(): Promise<void> {
      hold(await slots.acquire(route, holder, limit))
    },

    /**
     * Waits for a free slot, behind the requests that already wait. Returns at once if the slot is held.
     * @throws {AppError} ERR-UNAVAILABLE
     */
    async acquireInTurn(): Promise<void> {
      if (!held) hold(await slots.acquireInTurn(route, holder, over.signal, limit))
    },
  }
}
