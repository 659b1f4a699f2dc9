/**
 * Reads lists of ledgers. Requests for one list share the next read, and each token that waits reads at most one list
 * per pause. So neither a thousand waiting requests nor a thousand commits a second cause more reads than that.
 */
import { setTimeout as delay, setImmediate as immediate } from 'node:timers/promises'

/** One state of a list of ledgers. */
export interface LedgerList {
  /** The tag of its ETag. */
  tag: string
  /** The ledgers as JSON texts; undefined if every caller of the read already has the list. */
  lines: string[] | undefined
  /** The bodies of answers, by media type and encoding. */
  bodies: Map<string, Promise<Uint8Array>>
}

export class ListReads {
  readonly #pauseMs: number
  /** Reads that have not begun, by list. */
  readonly #coming = new Map<string, Promise<LedgerList>>()
  readonly #running = new Map<string, Promise<unknown>>()
  /** Pauses that are going on, by token. */
  readonly #pauses = new Map<string, Promise<unknown>>()

  constructor(pauseMs: number) {
    this.#pauseMs = pauseMs
  }

  /**
   * Reads a list once the read before it is over; all that ask meanwhile share one read.
   * @param list names what is read
   * @returns the result of a read that begins after this call
   */
  read(list: string, read: () => Promise<LedgerList>): Promise<LedgerList> {
    const coming = this.#coming.get(list) ?? this.#readNext(list, read)
    this.#coming.set(list, coming)
    return coming
  }

  /** Does what `read` does, after the pause of the token. The token's next pause begins then. */
  async readAfterPause(token: string, list: string, read: () => Promise<LedgerList>): Promise<LedgerList> {
    await this.#pauses.get(token)
    this.pause(token)
    return this.read(list, read)
  }

  /** Begins a pause, unless one is going on. */
  pause(token: string): void {
    if (this.#pauses.has(token)) return
    // A pause does not keep a process running.
    const pause = delay(this.#pauseMs, undefined, { ref: false }).then(() => this.#pauses.delete(token))
    this.#pauses.set(token, pause)
  }

  /** Returns the end of the pause that is going on; undefined if there is none. */
  pauseOf(token: string): Promise<unknown> | undefined {
    return this.#pauses.get(token)
  }

  async #readNext(list: string, read: () => Promise<LedgerList>): Promise<LedgerList> {
    // Gives other requests time to join the read: one notification wakes many, one after the other.
    await Promise.all([this.#running.get(list), immediate()])
    this.#coming.delete(list)
    const reading = read()
    const running = reading.catch(() => {})
    this.#running.set(list, running)
    try {
      return await reading
    } finally {
      if (this.#running.get(list) === running) this.#running.delete(list)
    }
  }
}
