/**
 * Claims full exports from the queue, at most one per thread. It runs each attempt in a thread, and records its
 * progress and its end.
 *
 * A process loses an export if it was silent for too long and another process claimed the export, or if staff cancelled
 * it. Then its next statement matches no row (see jobs.sql.ts), the thread stops, and nothing of its file stays in the
 * store. If the database is unreachable, or another server took its place, the export returns to the queue without
 * using up an attempt. The next attempt removes what a killed process left. After the last attempt, the queue entry
 * returns until a process finds the export ended and removes the rest.
 */
import { addAbortListener } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { ClientBase, Pool } from 'pg'
import { isAway } from '../db/outage.ts'
import { inTenant } from '../db/pool.ts'
import type { FileFormat } from '../formats/file-formats.ts'
import type { Log, RequeueReason } from '../log.ts'
import type { ObjectStore } from '../store/store.ts'
import type { ExportOutcome } from '../telemetry/metrics.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Threads } from '../threads/pool.ts'
import type { ExportTiming } from '../timing.ts'
import { type AttemptOutcome, type RunningAttempt, startAttempt } from './attempt.ts'
import { end, fail, finish } from './end.ts'
import type { Failure } from './failure.ts'
import { reasonOf } from './job.ts'
import { type Claim, claimExport, type ExportKey, releaseExport, renewExport } from './jobs.sql.ts'
import type { ClaimedEntry, ExportQueue, QueueEntry } from './queue.ts'
import { clearEnded } from './retention/leftovers.ts'
import type { RunningAttempts } from './running-attempts.ts'

interface SupervisorParts {
  /** Connects as the service role. */
  database: Pool
  queue: ExportQueue
  threads: Threads
  store: ObjectStore
  attempts: RunningAttempts
  timing: ExportTiming
  telemetry: Telemetry
  log: Log
}

/** An attempt that has ended. */
interface EndedAttempt {
  claim: Claim
  entry: ClaimedEntry
  /** Reports the end to telemetry. `cancelled` also stands for an export that another process has claimed. */
  report: (ended: ExportOutcome) => void
}

type Stored = Extract<AttemptOutcome, { stored: unknown }>

/**
 * From this attempt on, an unreachable database counts like any other failure. The limit is for an export whose
 * sessions are always cut, by a balancer for example: it looks as if the database were unreachable.
 */
const awayAttemptsMax = 30

/** Causes that lie in the export itself: other exports may still succeed. */
const ownCauses: Failure['cause'][] = ['folder', 'unsupported']

export class Supervisor {
  readonly #parts: SupervisorParts
  readonly #closing = new AbortController()

  constructor(parts: SupervisorParts) {
    this.#parts = parts
  }

  /** Starts claiming. @param concurrency exports that run at once */
  async start(concurrency: number): Promise<void> {
    const { queue } = this.#parts
    await queue.claim(concurrency, (entry) => this.#work(entry))
    await queue.claimDeadLetters((entry) => this.#endDeadLetter(entry))
  }

  /** Stops claiming, and requeues running exports for other processes without using up an attempt. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#parts.queue.stopClaiming()
  }

  /** @returns false if something was missing that the next export may lack, too */
  async #work(entry: ClaimedEntry): Promise<boolean> {
    const { database, threads, attempts, timing, log } = this.#parts
    const { schemaId, exportId } = entry.data
    if (this.#closing.signal.aborted) {
      await inTenant(database, schemaId, (client) => entry.requeue(client, 0))
      return false
    }
    const claimed = await inTenant(database, schemaId, (client) => claimExport(client, entry.data))
    // The export has ended: the process that seemed dead finished it, or it was cancelled.
    if (!claimed) {
      await this.#clear({ schemaId, exportId })
      return true
    }
    const claim: Claim = { schemaId, exportId, attempt: claimed.attempt, epoch: claimed.epoch }
    const started = performance.now()
    log('export.started', claim)
    const claimedAt = Date.now()
    const attempt = startAttempt(threads, claimed, timing.stopMs)
    const unlist = attempts.begin(claim, attempt)
    const endWatch = this.#watch(claim, attempt, entry.lost)
    const outcome = await attempt.outcome
    unlist()
    const isLost = await endWatch()
    const ms = Math.round(performance.now() - started)
    const report = (end: ExportOutcome) => this.#report(claimed.format, entry, claimedAt, outcome, end)
    const ended = { claim, entry, report }
    if ('stored' in outcome) await this.#finish(ended, outcome, ms)
    else if (this.#closing.signal.aborted) await this.#requeue(ended, 'stopping')
    else if (isLost) await this.#requeue(ended, 'lost')
    else if ('noThread' in outcome) await this.#requeue(ended, 'noThread')
    else if ('noConnections' in outcome) await this.#requeue(ended, 'noConnections')
    else await this.#fail(ended, outcome.failed)
    return 'stored' in outcome || isLost || ('failed' in outcome && ownCauses.includes(outcome.failed.cause))
  }

  #report(
    format: FileFormat,
    { data: { trace, requestId }, waitedSeconds: queue }: ClaimedEntry,
    claimedAt: number,
    outcome: AttemptOutcome,
    ended: ExportOutcome,
  ): void {
    const { rows, bytes } = 'stored' in outcome ? outcome.stored : { rows: 0, bytes: 0 }
    const measured = 'noThread' in outcome ? undefined : outcome.facts
    const facts = measured && { ...measured, stages: { queue, ...measured.stages } }
    const what = { kind: 'folder', format: format.toLowerCase(), outcome: ended, rows, bytes }
    const startedAt = claimedAt - queue * 1_000
    this.#parts.telemetry.exportEnded({ ...what, startedAt, facts, trace, requestId })
  }

  /**
   * Renews the claim at intervals. Stops the attempt when the export is lost or the process stops.
   * @returns function that ends the watch, and returns whether the export is lost
   */
  #watch(claim: Claim, attempt: RunningAttempt, lost: AbortSignal): () => Promise<boolean> {
    const { database, timing } = this.#parts
    const ended = new AbortController()
    let isLost = false
    const lose = () => {
      isLost = true
      attempt.stop()
    }
    const stack = new DisposableStack()
    stack.use(addAbortListener(lost, lose))
    stack.use(addAbortListener(this.#closing.signal, attempt.stop))
    const renew = () =>
      inTenant(database, claim.schemaId, (client) => renewExport(client, claim, attempt.progress()))
    const renewing = (async () => {
      while (await delay(timing.renewMs, true, { signal: ended.signal }).catch(() => false))
        // An unreachable database is ignored here: the attempt and the queue notice it too, and report it in more
        // detail.
        if (!(await renew().catch(() => true))) return lose()
    })()
    return async () => {
      stack.dispose()
      ended.abort()
      await renewing
      return isLost
    }
  }

  async #finish(ended: EndedAttempt, { stored: file, axesLeftOut }: Stored, ms: number): Promise<void> {
    const { database, store, log } = this.#parts
    const { claim } = ended
    if (axesLeftOut.length > 0) log('export.axesLeftOut', { ...claim, axes: axesLeftOut })
    let finished: boolean
    try {
      finished = await inTenant(database, claim.schemaId, (client) => finish(client, claim, file))
    } catch (error) {
      if (!isAway(error)) throw error
      // The file stays, because the transaction may have been committed after all. The next claim finds out.
      return this.#requeue(ended, 'databaseAway')
    }
    if (!finished) {
      await store.remove(file.fileKey)
      return this.#requeue(ended, 'lost')
    }
    ended.report('done')
    const { rows, bytes, fileBytes } = file
    log('export.done', { ...claim, rows, bytes, fileBytes, ms })
    // Nearly all attempts are first ones. They have nothing to clear, and so need no request to the store.
    if (claim.attempt > 1) await this.#clear(claim)
  }

  /**
   * Requeues the export without using up an attempt, unless another process has it or it has ended. Also does so if
   * only the queue entry was lost, or if the epoch of the claim has passed: with no entry left, no process might ever
   * claim the export again. Waits until the database is reachable.
   */
  async #requeue({ claim, entry, report }: EndedAttempt, because: RequeueReason): Promise<void> {
    const { database, timing, log } = this.#parts
    const hasBegun = because !== 'noThread' && because !== 'noConnections'
    const requeue = async (client: ClientBase) => {
      if (!(await releaseExport(client, claim))) return false
      // Without a pause, the export would return to the same busy threads again and again.
      await entry.requeue(client, hasBegun ? 0 : timing.pollSeconds)
      return true
    }
    // Waits first: a database whose connections are all taken may answer now, and fail again as soon as the export is
    // read.
    if (because === 'databaseAway') await this.#pause(timing.pollSeconds * 1_000)
    const isRequeued = await this.#onceBack(() => inTenant(database, claim.schemaId, requeue))
    if (hasBegun) report(isRequeued ? 'interrupted' : 'cancelled')
    if (isRequeued) log('export.requeued', { ...claim, because })
    else log('export.lost', claim)
  }

  /** Runs `run` again while the database is unreachable, until the process stops. `run` must be safe to repeat. */
  async #onceBack<Result>(run: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await run()
      } catch (error) {
        if (!isAway(error) || this.#closing.signal.aborted) throw error
        await this.#pause(this.#parts.timing.renewMs)
      }
    }
  }

  /** Waits, but no longer than until the process stops. */
  #pause(ms: number): Promise<void> {
    return delay(ms, undefined, { signal: this.#closing.signal }).catch(() => {})
  }

  async #fail(ended: EndedAttempt, failure: Failure): Promise<void> {
    const { database, log } = this.#parts
    const { claim, entry, report } = ended
    const { requestId } = entry.data
    const error = { message: failure.message, stack: failure.stack }
    if (failure.isAway && claim.attempt < awayAttemptsMax) {
      log('export.interrupted', { ...claim, error })
      return this.#requeue(ended, 'databaseAway')
    }
    if (failure.retryable && !entry.isLast) {
      log('export.interrupted', { ...claim, error })
      report('interrupted')
      await inTenant(database, claim.schemaId, (client) => releaseExport(client, claim))
      throw new Error(failure.message)
    }
    const reason = reasonOf(failure.cause, requestId, failure.detail)
    const failed = await inTenant(database, claim.schemaId, (client) => fail(client, claim, reason))
    if (!failed) return this.#requeue(ended, 'lost')
    report('failed')
    log('export.failed', { ...claim, requestId, cause: failure.cause, error })
    await this.#clear(claim)
  }

  async #endDeadLetter({ schemaId, exportId, requestId }: QueueEntry): Promise<true> {
    const { database, log } = this.#parts
    const reason = reasonOf('died', requestId)
    const ended = await inTenant(database, schemaId, (client) => end(client, { schemaId, exportId }, reason))
    if (ended) log('export.abandoned', { schemaId, exportId, requestId })
    await this.#clear({ schemaId, exportId })
    return true
  }

  /** Removes leftover files of an ended export. A failure of the store is only logged. */
  async #clear({ schemaId, exportId }: ExportKey): Promise<void> {
    const { database, store, log } = this.#parts
    const key = { schemaId, exportId }
    await clearEnded(database, store, key).catch((error) => log('export.notCleared', { ...key, error }))
  }
}
