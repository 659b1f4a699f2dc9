/**
 * Whether the process can take requests and, if not, what is missing. Each probe checks again, and failed requests are
 * remembered. Some dependencies cannot be probed without taking them from requests, such as the last free connections
 * of a server; others fail only in a large write, such as a full disk. So the cause of a failed answer is remembered
 * for `missingMs` (timing.ts), and after that until the first step of an export succeeds.
 */
import { DatabaseAway, missingOf, theDatabase, unavailable } from '../db/outage.ts'

export interface Need {
  /** `the store of files` */
  name: string
  /** Rejects if it is unavailable. */
  check: () => Promise<void>
}

interface Missing {
  name: string
  error: unknown
}

export interface ReadinessResult {
  /** Empty if requests are accepted. The errors are for the log. */
  missing: Missing[]
  /** Without these requests are accepted, and something else takes their place. */
  degraded: Missing[]
}

export class Readiness {
  readonly #needs: readonly Need[]
  readonly #replaceable: readonly Need[]
  readonly #beginExport: () => Promise<void>
  readonly #missingMs: number
  /** What requests found missing, with the latest time and error. */
  readonly #remembered = new Map<string, { at: number; error: unknown }>()
  /** Why requests are not accepted yet; undefined if they are. */
  #closedBy: unknown
  #checking: Promise<ReadinessResult> | undefined

  /**
   * @param needs of every request
   * @param begin does the first step of an export, on its own connections
   * @param missingMs the minimum time for which a failed request is remembered
   * @param replaceable needs whose place something else takes
   */
  constructor(
    needs: readonly Need[],
    begin: () => Promise<void>,
    missingMs: number,
    replaceable: readonly Need[] = [],
  ) {
    this.#needs = needs
    this.#replaceable = replaceable
    this.#beginExport = begin
    this.#missingMs = missingMs
  }

  /** Refuses requests until `open`. @param cause why the database could not be opened last time */
  close(cause: unknown): void {
    this.#closedBy = cause
  }

  /** The names of all needs, those that can be replaced last. */
  names(): string[] {
    return [...this.#needs, ...this.#replaceable].map(({ name }) => name)
  }

  open(): void {
    this.#closedBy = undefined
  }

  /** @throws {AppError} ERR-UNAVAILABLE */
  requireOpen(): void {
    if (this.#closedBy !== undefined) throw unavailable(this.#closedBy)
  }

  /**
   * Records the cause of a failed answer, if it is one to remember: a lost database is found by its own check, anything
   * else may be missing while every check succeeds.
   */
  recordFailure(error: unknown): void {
    const missing = missingOf(error)
    if (missing !== undefined && missing !== theDatabase)
      this.#remembered.set(missing, { at: performance.now(), error })
  }

  /** For the probe. Simultaneous probes share one check: the route is open to anyone, and each check opens connections. */
  check(): Promise<ReadinessResult> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  async #check(): Promise<ReadinessResult> {
    if (this.#closedBy !== undefined) {
      const name = nameOf(`the database of ${settingOf(this.#closedBy)}`, this.#closedBy)
      return { missing: [{ name, error: this.#closedBy }], degraded: [] }
    }
    const [missing, degraded] = await Promise.all([
      missingOfAll(this.#needs),
      missingOfAll(this.#replaceable),
    ])
    return { missing: [...missing, ...(await this.#stillMissing())], degraded }
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

/** In parallel: a check that gets no response takes seconds to time out. */
async function missingOfAll(needs: readonly Need[]): Promise<Missing[]> {
  const missing = await Promise.all(
    needs.map(({ name, check }) =>
      check().then(
        () => [],
        // Failing the check itself counts as missing.
        (error: unknown) => [{ name: nameOf(name, error), error }],
      ),
    ),
  )
  return missing.flat()
}

function settingOf(error: unknown): string {
  return error instanceof DatabaseAway ? error.setting : 'DATABASE_URL'
}

function nameOf(need: string, error: unknown): string {
  const missing = missingOf(error)
  return missing === undefined || missing === theDatabase ? need : `${need} (${missing})`
}
