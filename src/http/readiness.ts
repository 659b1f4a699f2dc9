/**
 * Whether the process can take requests, and what is missing where it cannot: asked anew by each probe, and learned from
 * requests. Some of what they need cannot be asked for without taking it from them, such as the last free connections
 * of a server, or shows only in a large write, such as a full disk. So what an answer failed of is remembered for
 * `missingMs` (timing.ts), and then until an attempt at the same goes well.
 */
import { missingOf, unavailable } from '../db/outage.ts'

export interface Need {
  /** `the store of files` */
  name: string
  /** Rejects where it is not there. */
  check: () => Promise<void>
}

interface Missing {
  name: string
  error: unknown
}

/** What can be gone for requests while every need is met. */
const rememberable = /^(room|a free connection|a safe connection|resources) /

export class Readiness {
  readonly #needs: readonly Need[]
  readonly #beginExport: () => Promise<void>
  readonly #missingMs: number
  /** What requests have found missing, as of the last time. */
  readonly #remembered = new Map<string, { at: number; error: unknown }>()
  /** Why requests are not taken yet; undefined: they are. */
  #closedBy: unknown
  #checking: Promise<Missing[]> | undefined

  /**
   * @param needs of every request
   * @param begin does what exports begin with, on connections of its own
   * @param missingMs what a request found missing is remembered for so long at the least
   */
  constructor(needs: readonly Need[], begin: () => Promise<void>, missingMs: number) {
    this.#needs = needs
    this.#beginExport = begin
    this.#missingMs = missingMs
  }

  /** No request is taken until `open`. @param cause as the last try to open the database had it */
  close(cause: unknown): void {
    this.#closedBy = cause
  }

  open(): void {
    this.#closedBy = undefined
  }

  /** @throws {AppError} ERR-UNAVAILABLE */
  requireOpen(): void {
    if (this.#closedBy !== undefined) throw unavailable(this.#closedBy)
  }

  /** An answer failed. */
  learn(error: unknown): void {
    const missing = missingOf(error)
    if (missing !== undefined && rememberable.test(missing))
      this.#remembered.set(missing, { at: performance.now(), error })
  }

  /**
   * For the prober; empty where requests are taken. The errors are for the log. Probes at the same time are given one
   * answer: anybody may ask, and each would open connections.
   */
  missing(): Promise<Missing[]> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  async #check(): Promise<Missing[]> {
    if (this.#closedBy !== undefined)
      return [{ name: nameOf('the database of DATABASE_URL', this.#closedBy), error: this.#closedBy }]
    // Side by side: one that is silent takes seconds to be given up.
    const missing = await Promise.all(
      this.#needs.map(({ name, check }) =>
        check().then(
          () => [],
          // What cannot even be asked is not there.
          (error: unknown) => [{ name: nameOf(name, error), error }],
        ),
      ),
    )
    return [...missing.flat(), ...(await this.#stillMissing())]
  }

  async #stillMissing(): Promise<Missing[]> {
    if (this.#remembered.size === 0) return []
    const now = performance.now()
    const isBegun = await this.#beginExport().then(
      () => true,
      () => false,
    )
    for (const [name, { at }] of this.#remembered) {
      if (isBegun && now - at >= this.#missingMs) this.#remembered.delete(name)
    }
    return [...this.#remembered].map(([name, { error }]) => ({ name, error }))
  }
}

function nameOf(need: string, error: unknown): string {
  const missing = missingOf(error)
  return missing === undefined || missing === 'the database' ? need : `${need} (${missing})`
}
