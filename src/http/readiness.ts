/**
 * Whether the process can take requests and, if not, what is missing. Each probe checks again. Failed requests are
 * remembered as well, because probes do not find everything: the last free connections of a server cannot be probed
 * without taking them from requests, and a full disk fails only a large write. The cause of a failed answer is
 * remembered for `missingMs` (timing.ts), and after that until the first step of an export succeeds.
 */
import {
  aFreeConnection,
  aWritableDatabase,
  DatabaseAway,
  missingOf,
  theDatabase,
  unavailable,
} from '../db/outage.ts'
import { AppError } from '../errors.ts'

/** Label of a need in metrics. */
type NeedLabel = 'database' | 'direct' | 'store' | 'threads' | 'replica'

export interface Need {
  /** The need in words: `the store of files`. */
  name: string
  label: NeedLabel
  /** Rejects if the need is not met. */
  check: () => Promise<void>
}

interface Missing {
  name: string
  /** `connections`: no connection is free. `requests`: only failed requests found that something is missing. */
  label: NeedLabel | 'connections' | 'requests'
  error: unknown
}

/** Whether a need is met, for metrics. */
export interface NeedState {
  label: Missing['label']
  isMet: boolean
}

interface ReadinessResult {
  /** Empty if requests are accepted. The errors are for the log. */
  missing: Missing[]
  /** Missing needs that have a substitute: requests are accepted without them. */
  degraded: Missing[]
}

export class Readiness {
  /** The names of all needs; those with a substitute come last. */
  readonly names: readonly string[]
  /** The error of the last attempt to open the database, while requests are refused; undefined once it is open. */
  closedBy: unknown
  readonly #needs: readonly Need[]
  readonly #replaceable: readonly Need[]
  readonly #beginExport: () => Promise<void>
  readonly #missingMs: number
  /** What failed requests found missing, with the latest time and error. */
  readonly #remembered = new Map<string, { at: number; error: unknown }>()
  readonly #doing: () => string | undefined
  #checking: Promise<ReadinessResult> | undefined
  #leaving: AppError | undefined

  /**
   * @param needs what every request needs
   * @param begin does the first step of an export, on its own connections
   * @param missingMs the minimum time for which a failed request is remembered
   * @param replaceable needs that have a substitute
   * @param doing the present step of opening the database, as /readyz names it
   */
  constructor(
    needs: readonly Need[],
    begin: () => Promise<void>,
    missingMs: number,
    replaceable: readonly Need[] = [],
    doing: () => string | undefined = () => undefined,
  ) {
    this.names = [...needs, ...replaceable].map(({ name }) => name)
    this.#doing = doing
    this.#needs = needs
    this.#replaceable = replaceable
    this.#beginExport = begin
    this.#missingMs = missingMs
  }

  /** Makes the process report that it is not ready, because it is stopping. */
  leave(): void {
    this.#leaving = new AppError('ERR-UNAVAILABLE', { message: 'Not ready: stopping' })
  }

  /** What /readyz answers once `leave` has been called. The stop was asked for, so the log reports no fault. */
  get leaving(): AppError | undefined {
    return this.#leaving
  }

  /** @throws {AppError} ERR-UNAVAILABLE */
  requireOpen(): void {
    if (this.closedBy !== undefined) throw unavailable(this.closedBy)
  }

  /**
   * Remembers the cause of a failed answer, unless a check finds it anyway. The check of the database finds a lost or
   * read-only database; anything else may be missing while every check succeeds.
   */
  recordFailure(error: unknown): void {
    const missing = missingOf(error)
    if (missing !== undefined && missing !== theDatabase && missing !== aWritableDatabase)
      this.#remembered.set(missing, { at: performance.now(), error })
  }

  /**
   * Checks for the probe. Simultaneous probes share one check: the route is open to anyone, and each check opens
   * connections.
   */
  check(): Promise<ReadinessResult> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  /** Runs the same check for metrics. @returns whether each need is met */
  async needStates(): Promise<NeedState[]> {
    const { missing, degraded } = await this.check()
    const lacking = new Set([...missing, ...degraded].map(({ label }) => label))
    // The check names one address of the database, but neither address has been used yet.
    if (this.closedBy !== undefined) lacking.add('database').add('direct')
    const labels = [...this.#needs, ...this.#replaceable].map(({ label }) => label)
    return [...labels, 'connections' as const, 'requests' as const].map((label) => ({
      label,
      isMet: !lacking.has(label),
    }))
  }

  async #check(): Promise<ReadinessResult> {
    const error = this.closedBy
    if (error !== undefined) {
      const setting = error instanceof DatabaseAway ? error.setting : 'DATABASE_URL'
      const label = setting === 'DIRECT_DATABASE_URL' ? 'direct' : 'database'
      return {
        missing: [missingNeed(this.#doing() ?? `the database of ${setting}`, label, error)],
        degraded: [],
      }
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
    return [...this.#remembered].map(([name, { error }]) => ({ name, label: 'requests', error }))
  }
}

/** Checks all needs in parallel: a check without a response takes seconds to time out. */
async function missingOfAll(needs: readonly Need[]): Promise<Missing[]> {
  const missing = await Promise.all(
    needs.map(({ name, label, check }) =>
      check().then(
        () => [],
        // A need whose check itself fails counts as missing.
        (error: unknown) => [missingNeed(name, label, error)],
      ),
    ),
  )
  return missing.flat()
}

function missingNeed(name: string, label: NeedLabel, error: unknown): Missing {
  const missing = missingOf(error)
  if (missing === undefined || missing === theDatabase) return { name, label, error }
  return { name: `${name} (${missing})`, label: missing === aFreeConnection ? 'connections' : label, error }
}
