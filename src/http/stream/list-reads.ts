/**
 * Reads of lists of ledgers: requests for one list share the next read, and each token that waits has at most one list in each
 * pause. So neither a thousand waiting requests nor a thousand commits a second read more than that.
 */
import { setTimeout as delay, setImmediate as immediate } from 'node:timers/promises'

/** One state of a list of ledgers. */
export interface LedgerList {
  /** Of its ETag. */
  tag: string
  /** JSON texts; undefined if every caller of the read has the list. */
  lines: string[] | undefined
  /** By media type and encoding. */
  bodies: Map<string, Promise<Uint8Array>>
}

export class ListReads {
  readonly #pauseMs: number
  /** By list: reads that have not begun. */
  readonly #coming = new Map<string, Promise<LedgerList>>()
  readonly #running = new Map<string, Promise<unknown>>()
  /** By token. */
  readonly #pauses = new Map<string, Promise<unknown>>()

  constructor(pauseMs: number) {
    this.#pauseMs = pauseMs
  }

  /**
   * A read begins when the one before it is over: those that ask meanwhile share the next.
   * @param list names what is read
   * @returns what a read gives that begins after this call
   */
  read(list: string, read: () => Promise<LedgerList>): Promise<LedgerList> {
    const coming = this.#coming.get(list) ?? this.#readNext(list, read)
    this.#coming.set(list, coming)
    return coming
  }

  /** As `read`, after the pause of the token, whose next pause begins then. */
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

  /** The end of the pause that is going on; undefined without one. */
  pauseOf(token: string): Promise<unknown> | undefined {
    return this.#pauses.get(token)
  }

  async #readNext(list: string, read: () => Promise<LedgerList>): Promise<LedgerList> {
    // One notification wakes many requests, one after the other.
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
