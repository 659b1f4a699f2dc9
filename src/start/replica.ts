/**
 * The replica of EXPORT_DATABASE_URL as the whole process sees it, for /readyz, the log and the metrics. Exports do not
 * need it: each thread finds out by itself where it may read (exports/sources).
 */
import type { Pool } from 'pg'
import type { Address } from '../db/address.ts'
import { createPool } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import type { ReplicaNews, ThreadNews } from '../exports/sources/export-sources.ts'
import { readReplay, readWritten } from '../exports/sources/replica.sql.ts'
import type { Need } from '../http/readiness.ts'
import type { Log } from '../log.ts'
import type { FallbackReason } from '../telemetry/metrics.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Threads } from '../threads/pool.ts'
import type { ReplicaTiming } from '../timing.ts'
import { checkPool } from './needs.ts'

/** Why exports do not read the replica, in the words of /readyz. */
const findings: Record<FallbackReason, string> = {
  behind: 'behind the main database',
  away: 'it cannot be read',
  promoted: 'no replica of the main database',
  conflict: 'it cancels exports because of changes that it replays',
}

const marksMax = 100

/**
 * Watches the replica. @param main pool of the main database; connects as the service role, like every pool of the
 * service
 */
export function watchReplica(
  main: Pool,
  address: Address,
  parts: { threads: Threads; timing: ReplicaTiming; telemetry: Pick<Telemetry, 'observe'>; log: Log },
): { need: Need; close(): Promise<void> } {
  const { threads, timing, telemetry, log } = parts
  const pool = createPool(address, {
    max: 1,
    connectMs: timing.silentMs,
    applicationName: 'grandlivre readiness',
  })
  const readLag = lagOf(pool, main)
  telemetry.observe('grandlivre.replica.lag', readLag)
  /** Why each thread has left the replica, by the thread's id. */
  const reasons = new Map<number, NonNullable<ReplicaNews['left']>>()
  threads.exports.on('message', ({ replica: { threadId, left } }: ThreadNews) => {
    if (left) {
      reasons.set(threadId, left)
      log('replica.left', { threadId, ...left })
    } else {
      reasons.delete(threadId)
      log('replica.regained', { threadId })
    }
  })
  /** Throws while exports read the main database instead of the replica. */
  const check = async () => {
    await checkPool(pool, address.isPooled)
    const seconds = await readLag()
    if (seconds === undefined) throw unfit(findings.promoted)
    if (seconds * 1000 > timing.waitMs) throw unfit(`${findings.behind} by ${Math.round(seconds)} seconds`)
    const ids = threads.exports.threads.map(({ threadId }) => threadId)
    for (const [id, { reason }] of reasons) {
      if (ids.includes(id)) throw unfit(findings[reason])
      reasons.delete(id)
    }
  }
  const need = { name: 'the database of EXPORT_DATABASE_URL', label: 'replica', check } as const
  return { need, close: () => pool.end() }
}

/**
 * Reads how far the replica lags: the age in seconds of the state that it shows, or 0 if the main database has no newer
 * state. Undefined if it is not a replica of the main database. An old last commit alone is no lag: the main database
 * may simply have nothing to write.
 */
function lagOf(replica: Pool, main: Pool): () => Promise<number | undefined> {
  /**
   * Positions in the log of the main database, ascending, each with the `performance.now()` at which it was the latest
   * position.
   */
  const marks: { position: string; at: number }[] = []
  /** When the main database was in the state that the replica now shows. */
  let shownAt: number | undefined
  return async () => {
    const { server, written } = await readWritten(main)
    const now = performance.now()
    shownAt ??= now
    // The replica may not have reached these marks yet.
    marks.push({ position: written, at: now })
    const positions = marks.map(({ position }) => position)
    const replay = await readReplay(replica, positions)
    if (!replay.isReplica) return replay.server === server ? 0 : undefined
    const reached = marks.splice(0, replay.reached)
    shownAt = reached.at(-1)?.at ?? shownAt
    if (marks.length === 0) return 0
    // A busy replica may be hours late. Then fewer marks are kept, and the lag is less exact.
    if (marks.length > marksMax) marks.splice(1, 1)
    const seconds = (now - shownAt) / 1000
    return Math.max(0, Math.min(seconds, replay.commitAgeSeconds ?? seconds))
  }
}

function unfit(missing: string): AppError {
  return new AppError('ERR-UNAVAILABLE', { missing })
}
