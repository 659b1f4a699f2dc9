/**
 * The replica of EXPORT_DATABASE_URL as the whole process sees it, for /readyz, the log and the metrics. Exports do not
 * need it: each thread finds out by itself where it may read (exports/sources).
 */
import type { Pool } from 'pg'
import type { Address } from '../db/address.ts'
import { createPool } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import type { ReplicaNews, ThreadNews } from '../exports/sources/export-sources.ts'
import type { Need } from '../http/readiness.ts'
import type { Log } from '../log.ts'
import type { FallbackReason } from '../telemetry/metrics.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Threads } from '../threads/pool.ts'
import type { ReplicaTiming } from '../timing.ts'
import { checkPool } from './needs.ts'
import { readReplay, readWritten } from './replica.sql.ts'

export interface ReplicaParts {
  /** Connects as the service role, as all do. */
  main: Pool
  address: Address
  threads: Threads
  timing: ReplicaTiming
  telemetry: Pick<Telemetry, 'observe'>
  log: Log
}

/** In the words of /readyz. */
const findings: Record<FallbackReason, string> = {
  behind: 'behind the main database',
  away: 'it cannot be read',
  promoted: 'no replica of the main database',
  conflict: 'it cancels exports for what it replays',
}

/** A position in the log of the main database, and the time at which it was the last one. */
interface Mark {
  position: string
  /** By `performance.now()`. */
  at: number
}

export class ReplicaWatch {
  readonly #parts: ReplicaParts
  readonly #pool: Pool
  /** Why threads have left the replica, by their ids. */
  readonly #left = new Map<number, NonNullable<ReplicaNews['left']>>()
  /** Ascending. The replica may not have reached these. */
  #marks: Mark[] = []
  /** A time whose state the replica has shown. */
  #shownAt: number | undefined

  constructor(parts: ReplicaParts) {
    this.#parts = parts
    const { address, timing, threads } = parts
    this.#pool = createPool(address, {
      max: 1,
      connectMs: timing.silentMs,
      applicationName: 'grandlivre readiness',
    })
    parts.telemetry.observe('grandlivre.replica.lag', async () => {
      const value = await this.lagSeconds()
      return value === undefined ? [] : [{ value }]
    })
    threads.exports.on('message', (message: ThreadNews) => this.#hear(message))
  }

  /** Missing while exports read the main database instead. */
  get need(): Need {
    return { name: 'the database of EXPORT_DATABASE_URL', label: 'replica', check: () => this.#check() }
  }

  async #check(): Promise<void> {
    await checkPool(this.#pool, this.#parts.address.isPooled)
    const seconds = await this.lagSeconds()
    if (seconds === undefined) throw unfit(findings.promoted)
    if (seconds * 1000 > this.#parts.timing.waitMs)
      throw unfit(`${findings.behind} by ${Math.round(seconds)} seconds`)
    const ids = this.#parts.threads.exports.threads.map(({ threadId }) => threadId)
    for (const [id, { reason }] of this.#left) {
      if (ids.includes(id)) throw unfit(findings[reason])
      this.#left.delete(id)
    }
  }

  /**
   * How old the state is that the replica shows; 0 if the main database has none that is newer. Undefined if it is no
   * replica of the main database. An old last commit does not make it late: the main database may rest.
   */
  async lagSeconds(): Promise<number | undefined> {
    const { main } = this.#parts
    const { server, written } = await readWritten(main)
    const now = performance.now()
    this.#shownAt ??= now
    this.#marks.push({ position: written, at: now })
    const replay = await readReplay(
      this.#pool,
      this.#marks.map(({ position }) => position),
    )
    if (!replay.isReplica) return replay.server === server ? 0 : undefined
    const reached = this.#marks.splice(0, replay.reached)
    this.#shownAt = reached.at(-1)?.at ?? this.#shownAt
    if (this.#marks.length === 0) return 0
    // What a busy replica has not reached for hours is not forgotten, but need not be known to the second.
    if (this.#marks.length > marksMax) this.#marks.splice(1, 1)
    const seconds = (now - this.#shownAt) / 1000
    return Math.max(0, Math.min(seconds, replay.commitAgeSeconds ?? seconds))
  }

  close(): Promise<void> {
    return this.#pool.end()
  }

  #hear({ replica }: ThreadNews): void {
    const { threadId, left } = replica
    if (left) {
      this.#left.set(threadId, left)
      this.#parts.log('replica.left', { threadId, ...left })
    } else {
      this.#left.delete(threadId)
      this.#parts.log('replica.regained', { threadId })
    }
  }
}

const marksMax = 100

function unfit(missing: string): AppError {
  return new AppError('ERR-UNAVAILABLE', { missing })
}
