import type { ServerResponse } from 'node:http'
import type { RequestSlots } from '../auth/request-slots.ts'

export type RequestSlot = ReturnType<typeof requestSlot>

/** Runs once the answer is over: ended, failed, or given up by the client. At once, if it is over already. */
export function whenOver(outgoing: ServerResponse, run: () => void): void {
  outgoing.once('close', run)
  if (outgoing.closed) run()
}

/**
 * The slot of one request, held until its answer is over.
 * @param holder what the slots of the route are counted for: a folder, a partner in a folder, or a token
 * @param limit of these slots. Absent: that of all routes
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
     * Waits for a free slot, after the requests that wait already, unless the slot is held.
     * @throws {AppError} ERR-UNAVAILABLE
     */
    async acquireInTurn(): Promise<void> {
      if (!held) hold(await slots.acquireInTurn(route, holder, over.signal, limit))
    },
  }
}
