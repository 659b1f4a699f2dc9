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
import {
  type Claim,
  type ClaimedExport,
  claimExport,
  type ExportKey,
  releaseExport,
  renewExport,
} from './jobs.sql.ts'
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

/**
 * Reports to telemetry how an attempt ended. `cancelled` also stands for an export that another process has claimed.
 */
type Report = (ended: ExportOutcome) => void

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
    await queue.claim(concurrency, (claimed) => this.#work(claimed))
    await queue.claimDeadLetters((entry) => this.#endDeadLetter(entry))
  }

  /** Stops claiming, and requeues running exports for other processes without using up an attempt. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#parts.queue.stopClaiming()
  }

  /** @returns false if something was missing that the next export may lack, too */
  async #work(claimed: ClaimedEntry): Promise<boolean> {
    const { database, log } = this.#parts
    const { schemaId, exportId } = claimed.entry
    if (this.#closing.signal.aborted) {
      await inTenant(database, schemaId, (client) => claimed.requeue(client, 0))
      return false
    }
    const job = await inTenant(database, schemaId, (client) => claimExport(client, claimed.entry))
    // The export has ended: the process that seemed dead finished it, or it was cancelled.
    if (!job) {
      await this.#clear({ schemaId, exportId })
      return true
    }
    const claim: Claim = { schemaId, exportId, attempt: job.attempt, epoch: job.epoch }
    const started = performance.now()
    log('export.started', claim)
    const claimedAt = Date.now()
    const attempt = this.#start(claim, job)
    const unlist = this.#parts.attempts.begin(claim, attempt)
    const endWatch = this.#watch(claim, attempt, claimed.lost)
    const outcome = await attempt.outcome
    unlist()
    const isLost = await endWatch()
    const ms = Math.round(performance.now() - started)
    const report: Report = (ended) => this.#report(job, claimed, { ended, outcome, claimedAt })
    if ('stored' in outcome) await this.#finish(claim, claimed, outcome, ms, report)
    else if (this.#closing.signal.aborted) await this.#requeue(claim, claimed, 'stopping', report)
    else if (isLost) await this.#requeue(claim, claimed, 'lost', report)
    // An export that has not begun is not reported to telemetry.
    else if ('noThread' in outcome) await this.#requeue(claim, claimed, 'noThread', () => {})
    else if ('noConnections' in outcome) await this.#requeue(claim, claimed, 'noConnections', () => {})
    else await this.#fail(claim, claimed, job, outcome.failed, report)
    return 'stored' in outcome || isLost || ('failed' in outcome && ownCauses.includes(outcome.failed.cause))
  }

  #report(
    { format }: ClaimedExport,
    { entry: { trace, requestId }, waitedSeconds: queue }: ClaimedEntry,
    { ended, outcome, claimedAt }: { ended: ExportOutcome; outcome: AttemptOutcome; claimedAt: number },
  ): void {
    const { rows, bytes } = 'stored' in outcome ? outcome.stored : { rows: 0, bytes: 0 }
    const measured = 'noThread' in outcome ? undefined : outcome.facts
    const facts = measured && { ...measured, stages: { queue, ...measured.stages } }
    const what = { kind: 'folder', format: format.toLowerCase(), outcome: ended, rows, bytes }
    const startedAt = claimedAt - queue * 1_000
    this.#parts.telemetry.exportEnded({ ...what, startedAt, facts, trace, requestId })
  }

  #start({ schemaId, exportId, attempt }: Claim, job: ClaimedExport): RunningAttempt {
    const { threads, timing } = this.#parts
    const { version, format, withEmployees, folderId, periodStart: start, periodEnd: end, journalIds } = job
    const period =
      start !== null && end !== null ? { start, end, dateFilter: 'document' as const } : undefined
    const task = {
      exportId,
      attempt,
      version,
      format,
      compression: job.compression ?? undefined,
      withEmployees,
      options: { encoding: job.encoding ?? undefined, columns: job.columns ?? undefined },
      selection: { schemaId, folderId, exerciceId: job.exerciceId ?? undefined, period, journalIds },
      seen: job.seen ?? undefined,
    }
    return startAttempt(threads, task, timing.stopMs)
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

  async #finish(
    claim: Claim,
    claimed: ClaimedEntry,
    outcome: Stored,
    ms: number,
    report: Report,
  ): Promise<void> {
    const { database, store, log } = this.#parts
    const { stored: file, axesLeftOut } = outcome
    if (axesLeftOut.length > 0) log('export.axesLeftOut', { ...claim, axes: axesLeftOut })
    let finished: boolean
    try {
      finished = await inTenant(database, claim.schemaId, (client) => finish(client, claim, file))
    } catch (error) {
      if (!isAway(error)) throw error
      // The file stays, because the transaction may have been committed after all. The next claim finds out.
      return this.#requeue(claim, claimed, 'databaseAway', report)
    }
    if (!finished) {
      await store.remove(file.fileKey)
      return this.#requeue(claim, claimed, 'lost', report)
    }
    report('done')
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
  async #requeue(claim: Claim, claimed: ClaimedEntry, because: RequeueReason, report: Report): Promise<void> {
    const { database, timing, log } = this.#parts
    const requeue = async (client: ClientBase) => {
      if (!(await releaseExport(client, claim))) return false
      // Without a pause, the export would return to the same busy threads again and again.
      await claimed.requeue(client, because.startsWith('no') ? timing.pollSeconds : 0)
      return true
    }
    // Waits first: a database whose connections are all taken may answer now, and fail again as soon as the export is
    // read.
    if (because === 'databaseAway') await this.#pause(timing.pollSeconds * 1_000)
    const isRequeued = await this.#onceBack(() => inTenant(database, claim.schemaId, requeue))
    report(isRequeued ? 'interrupted' : 'cancelled')
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

  async #fail(
    claim: Claim,
    claimed: ClaimedEntry,
    job: ClaimedExport,
    failure: Failure,
    report: Report,
  ): Promise<void> {
    const { database, log } = this.#parts
    const error = { message: failure.message, stack: failure.stack }
    if (failure.isAway && claim.attempt < awayAttemptsMax) {
      log('export.interrupted', { ...claim, error })
      return this.#requeue(claim, claimed, 'databaseAway', report)
    }
    if (failure.retryable && !claimed.isLast) {
      log('export.interrupted', { ...claim, error })
      report('interrupted')
      await inTenant(database, claim.schemaId, (client) => releaseExport(client, claim))
      throw new Error(failure.message)
    }
    const reason = reasonOf(failure.cause, job.requestId, failure.detail)
    const failed = await inTenant(database, claim.schemaId, (client) => fail(client, claim, reason))
    if (!failed) return this.#requeue(claim, claimed, 'lost', report)
    report('failed')
    log('export.failed', { ...claim, requestId: job.requestId, cause: failure.cause, error })
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
