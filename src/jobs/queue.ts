/**
 * Who works on which export when: pg-boss, kept to what the service needs of it. Entries are made in the transaction
 * that makes the row of the export, are handed to one process at a time, come back when that process is not heard of
 * any more, and after the last attempt go to the queue of the abandoned.
 */
import { strict as assert } from 'node:assert'
import type { ClientBase } from 'pg'
import { type ConnectionOptions, type JobWithMetadata, PgBoss } from 'pg-boss'
import { deadLetterQueue, exportAttempts, exportQueue, queueSchema } from '../db/migrations/queue-schema.ts'
import { pooledConnections } from '../db/pool.ts'
import type { Log } from '../log.ts'
import type { ExportTiming } from '../timing.ts'

export interface QueueEntry {
  schemaId: string
  exportId: string
  /** Of the trigger. */
  requestId: string
}

/** An entry in the hands of this process. */
export interface ClaimedEntry {
  entry: QueueEntry
  /** No attempt is left behind this one. */
  isLast: boolean
  /** Aborted when another process may have it. */
  lost: AbortSignal
  /**
   * Puts it back for whoever is there, without using up the attempt, in the caller's transaction. (The library's way
   * back is to fail, which uses it up. So the entry ends, and one with the attempts that are left takes its place.)
   * @param pauseSeconds before anybody is given it
   */
  requeue: (client: ClientBase, pauseSeconds: number) => Promise<void>
}

/** While the database is away pg-boss reports each question it asks in vain, several a second. */
const reportMs = 10_000

/** How often this process says that it lives. Not half of what silence is allowed: many may come late or fail. */
const aliveSeconds = 2

export class ExportQueue {
  readonly #boss: PgBoss
  readonly #polling: { pollingIntervalSeconds: number; notifyPollingIntervalSeconds: number }
  #reportedAt = 0

  /** Asks nothing of the database until `start`. */
  constructor(serviceUrl: string, log: Log, { superviseSeconds, pollSeconds }: ExportTiming) {
    this.#polling = { pollingIntervalSeconds: pollSeconds, notifyPollingIntervalSeconds: pollSeconds }
    this.#boss = new PgBoss({
      // Handed on to pg. One more connection is not checked: it only listens, and wakes workers, which ask the pool.
      ...pooledConnections(serviceUrl, 'service'),
      application_name: 'grandlivre queue',
      max: 3,
      schema: queueSchema,
      // The owner made the tables; this role may not.
      migrate: false,
      schedule: false,
      reindex: false,
      monitorVacuum: false,
      useListenNotify: true,
      // Every process looks for entries whose process died, those that are due, and their own definitions so often.
      superviseIntervalSeconds: superviseSeconds,
      monitorIntervalSeconds: superviseSeconds,
    })
    this.#boss.on('error', (error) => {
      const now = performance.now()
      if (this.#reportedAt !== 0 && now - this.#reportedAt < reportMs) return
      this.#reportedAt = now
      log('queue.error', { error })
    })
  }

  /** @throws {Error} where the database is away, or its queue is not that of this code */
  async start(): Promise<void> {
    try {
      await this.#boss.start()
    } catch (error) {
      // What was started until then; `start` may be tried again.
      await this.close()
      throw error
    }
  }

  /** In the transaction that makes the export. */
  async add(client: ClientBase, entry: QueueEntry): Promise<void> {
    const id = await this.#send(client, entry, exportAttempts)
    assert(id !== null, 'a new export has no entry yet')
  }

  /** Has entries worked on, `concurrency` at a time. Where `work` rejects, the entry comes back after a while. */
  async claim(concurrency: number, work: (claimed: ClaimedEntry) => Promise<void>): Promise<void> {
    await this.#boss.work(
      exportQueue,
      {
        ...this.#polling,
        heartbeatRefreshSeconds: aliveSeconds,
        includeMetadata: true,
        localConcurrency: concurrency,
      },
      async ([job]: JobWithMetadata<QueueEntry>[]) => {
        assert(job)
        await work({
          entry: job.data,
          isLast: job.retryCount >= job.retryLimit,
          lost: job.signal,
          requeue: (client, pauseSeconds) => this.#requeue(client, job, pauseSeconds),
        })
      },
    )
  }

  async claimDeadLetters(work: (entry: QueueEntry) => Promise<void>): Promise<void> {
    await this.#boss.work<QueueEntry>(deadLetterQueue, this.#polling, async ([job]) => {
      assert(job)
      await work(job.data)
    })
  }

  /** Takes no more; resolves when nothing that was taken is still worked on. */
  async stopClaiming(): Promise<void> {
    await Promise.all([exportQueue, deadLetterQueue].map((name) => this.#boss.offWork(name, { wait: true })))
  }

  async close(): Promise<void> {
    await this.#boss.stop({ graceful: false })
  }

  async #requeue(client: ClientBase, job: JobWithMetadata<QueueEntry>, pauseSeconds: number): Promise<void> {
    await this.#boss.complete(exportQueue, { id: job.id, retryCount: job.retryCount }, {}, through(client))
    // Refused where the entry has been given to another process already: then there is nothing to hand back.
    await this.#send(client, job.data, job.retryLimit - job.retryCount + 1, pauseSeconds)
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
