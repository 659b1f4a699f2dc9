/**
 * The queue of full exports: the part of pg-boss that the service needs. An entry is inserted in the same transaction
 * as the export's row. One process at a time claims it. It returns to the queue when that process stops sending
 * heartbeats, and becomes a dead letter after the last attempt.
 */
import { strict as assert } from 'node:assert'
import type { ClientBase } from 'pg'
import { type ConnectionOptions, type JobWithMetadata, PgBoss } from 'pg-boss'
import { deadLetterQueue, exportAttempts, exportQueue, queueSchema } from '../db/migrations/queue-schema.ts'
import { pooledConnections } from '../db/pool.ts'
import type { Log } from '../log.ts'
import type { TraceHeaders } from '../telemetry/telemetry.ts'
import type { ExportTiming } from '../timing.ts'

export interface QueueEntry {
  schemaId: string
  exportId: string
  /** Id of the trigger's request. */
  requestId: string
  /** Trace headers of the trigger. An entry is JSON, so they need no column. */
  trace?: TraceHeaders | undefined
  /** ISO 8601: since when the entry has waited, if it was claimed before but found no thread or no connections. */
  since?: string | undefined
}

/** An entry that this process has claimed. */
export interface ClaimedEntry {
  data: QueueEntry
  /** Whether this is the last attempt. */
  isLast: boolean
  /** How long the entry was ready to be claimed before this process claimed it. */
  waitedSeconds: number
  /** Aborted when another process may claim the entry. */
  lost: AbortSignal
  /**
   * Requeues the entry in the caller's transaction, without using up the attempt. (pg-boss can only return an entry by
   * failing it, which uses up the attempt. So the entry is completed, and a new one gets the remaining attempts.)
   * @param pauseSeconds delay before the entry can be claimed
   */
  requeue: (client: ClientBase, pauseSeconds: number) => Promise<void>
}

/** Minimum interval between log lines: pg-boss reports several failures a second while the database is unreachable. */
const reportMs = 10_000

/**
 * Heartbeat interval. It is less than half of the silence that is tolerated, because heartbeats may be late or fail.
 */
const aliveSeconds = 2

export class ExportQueue {
  readonly #boss: PgBoss
  readonly #polling: { pollingIntervalSeconds: number; notifyPollingIntervalSeconds: number }
  #reportedAt = 0
  #isClosed = false

  /**
   * Does not connect until `start`.
   * @param directUrl leads to PostgreSQL itself
   */
  constructor(directUrl: string, log: Log, { superviseSeconds, pollSeconds }: ExportTiming) {
    this.#polling = { pollingIntervalSeconds: pollSeconds, notifyPollingIntervalSeconds: pollSeconds }
    this.#boss = new PgBoss({
      // These options are passed on to pg. pg-boss opens one more connection that is not checked: it only listens and
      // wakes the workers, which use the pool. All statements of pg-boss take turns on one connection: each takes a
      // millisecond or two.
      ...pooledConnections(directUrl, 'service', 'grandlivre queue'),
      max: 1,
      schema: queueSchema,
      // The owner has created the tables; this role may not.
      migrate: false,
      schedule: false,
      reindex: false,
      monitorVacuum: false,
      useListenNotify: true,
      // How often each process looks for entries that are due or whose process died, and refreshes the queue
      // definitions.
      superviseIntervalSeconds: superviseSeconds,
      monitorIntervalSeconds: superviseSeconds,
    })
    this.#boss.on('error', (error) => {
      // The pool counts as ended before the server has closed its connections. If the server is stopped then, one of
      // them may still report an error.
      if (this.#isClosed) return
      const now = performance.now()
      if (this.#reportedAt !== 0 && now - this.#reportedAt < reportMs) return
      this.#reportedAt = now
      log('queue.error', { error })
    })
  }

  /** @throws {Error} if the database is unreachable or has another version of the queue */
  async start(): Promise<void> {
    this.#isClosed = false
    try {
      await this.#boss.start()
    } catch (error) {
      // Stops what has started, so that `start` can be retried.
      await this.close()
      throw error
    }
  }

  /** Adds an entry in the transaction that inserts the export. */
  async add(client: ClientBase, entry: QueueEntry): Promise<void> {
    const id = await this.#send(client, entry, exportAttempts)
    assert(id !== null, 'a new export has no entry yet')
  }

  /**
   * Claims entries, `concurrency` at a time. If `work` rejects, the entry is retried after a delay.
   * @param work resolves to false if the next entry should wait for the next poll
   */
  async claim(concurrency: number, work: (claimed: ClaimedEntry) => Promise<boolean>): Promise<void> {
    for (let slot = 0; slot < concurrency; slot++)
      await this.#startWorker(exportQueue, (job) => {
        const since = job.data.since ?? job.startAfter.toISOString()
        return work({
          data: job.data,
          isLast: job.retryCount >= job.retryLimit,
          waitedSeconds: Math.max(0, (job.startedOn.getTime() - Date.parse(since)) / 1_000),
          lost: job.signal,
          requeue: (client, pauseSeconds) => this.#requeue(client, job, pauseSeconds, since),
        })
      })
  }

  /** @param work as for `claim` */
  claimDeadLetters(work: (entry: QueueEntry) => Promise<boolean>): Promise<void> {
    return this.#startWorker(deadLetterQueue, ({ data }) => work(data))
  }

  /**
   * Starts a worker. It claims one entry at a time, and the next one as soon as the first has ended. (With a poll in
   * between, 3,000 small exports took 48 minutes instead of one. pg-boss's own `burstWhenReadyExceeds` relies on a
   * count that is up to a minute old, and leaves the last entries to the poll.) If an export failed because something
   * was missing, the worker waits for the next poll or notification: otherwise a store that refuses would fail the
   * whole queue within a minute.
   */
  async #startWorker(
    queue: string,
    work: (job: JobWithMetadata<QueueEntry>) => Promise<boolean>,
  ): Promise<void> {
    const options = {
      ...this.#polling,
      heartbeatRefreshSeconds: aliveSeconds,
      includeMetadata: true,
    } as const
    const worker = await this.#boss.work(queue, options, async ([job]: JobWithMetadata<QueueEntry>[]) => {
      assert(job)
      if (await work(job)) this.#boss.notifyWorker(worker)
    })
  }

  /** Stops claiming; resolves when the claimed entries are done. */
  async stopClaiming(): Promise<void> {
    await Promise.all([exportQueue, deadLetterQueue].map((name) => this.#boss.offWork(name, { wait: true })))
  }

  async close(): Promise<void> {
    await this.#boss.stop({ graceful: false })
    this.#isClosed = true
  }

  async #requeue(
    client: ClientBase,
    job: JobWithMetadata<QueueEntry>,
    pauseSeconds: number,
    since: string,
  ): Promise<void> {
    await this.#boss.complete(exportQueue, { id: job.id, retryCount: job.retryCount }, {}, through(client))
    // An export that is requeued with a pause has not begun, so its wait still counts from the first time.
    const entry = { ...job.data, since: pauseSeconds > 0 ? since : undefined }
    // No effect if another process has claimed the entry in the meantime: then there is nothing to requeue.
    await this.#send(client, entry, job.retryLimit - job.retryCount + 1, pauseSeconds)
  }

  #send(client: ClientBase, entry: QueueEntry, attempts: number, pauseSeconds = 0): Promise<string | null> {
    const counted = { retryLimit: attempts - 1, startAfter: pauseSeconds }
    const options = { singletonKey: entry.exportId, ...counted, ...through(client) }
    return this.#boss.send(exportQueue, entry, options)
  }
}

function through(client: ClientBase): ConnectionOptions {
  return { db: { executeSql: (text, values) => client.query(text, values) } }
}
