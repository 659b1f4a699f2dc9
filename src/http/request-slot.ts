import type { ServerResponse } from 'node:http'
import type { RequestSlots } from '../auth/request-slots.ts'

/** The slot of one request, held until its answer is over: ended, failed, or given up by the client. */
export class RequestSlot {
  readonly #slots: RequestSlots
  readonly #route: string
  readonly #folderId: string
  readonly #over = new AbortController()
  #release: (() => void) | undefined

  /** @param outgoing emits `close` once the answer is over */
  constructor(slots: RequestSlots, route: string, folderId: string, outgoing: ServerResponse) {
    this.#slots = slots
    this.#route = route
    this.#folderId = folderId
    const end = () => {
      this.#over.abort()
      this.release()
    }
    outgoing.once('close', end)
    // It may have closed already.
    if (outgoing.closed) end()
  }

  /** Aborted when the answer is over. */
  get over(): AbortSignal {
    return this.#over.signal
  }

  /** @throws {AppError} ERR-TOO-MANY-CONCURRENT-REQUEST if all slots are held, ERR-UNAVAILABLE */
  async acquire(): Promise<void> {
    this.#hold(await this.#slots.acquire(this.#route, this.#folderId))
  }

  /**
   * Waits for a free slot, after the requests that wait already, unless the slot is held.
   * @throws {AppError} ERR-UNAVAILABLE
   */
  async acquireInTurn(): Promise<void> {
    if (this.#release) return
    this.#hold(await this.#slots.acquireInTurn(this.#route, this.#folderId, this.#over.signal))
  }

  release(): void {
    this.#release?.()
    this.#release = undefined
  }

  #hold(release: (() => void) | undefined): void {
    this.#release = release
    if (this.#over.signal.aborted) this.release()
  }
}
