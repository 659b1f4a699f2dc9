/**
 * The tables of the queue, which the library pg-boss creates and migrates in its own schema. The owner of the ledger
 * owns them and the service role uses them. Their rows name exports and contain nothing of a ledger.
 */

import type pg from 'pg'
import { PgBoss, type Queue } from 'pg-boss'
import { lookUp } from '../statement.ts'

export const queueSchema = 'pgboss'

/** One entry for each full export until it has ended. */
export const exportQueue = 'exports'
/** The dead letter queue: exports whose process died in the last attempt, before it could record a failure. */
export const deadLetterQueue = 'exports_abandoned'

/** Attempts of an export before it fails. */
export const exportAttempts = 3

/**
 * Policy of the queue: one entry per export. A process without a heartbeat for fifteen seconds loses its export (the
 * minimum is ten, too short for an overloaded processor or disk). The second attempt starts after 4 to 8 seconds, the
 * third after 8 to 16, enough for a restart of the database. No export takes six hours.
 */
const exportQueueOptions = {
  policy: 'exclusive',
  notify: true,
  deadLetter: deadLetterQueue,
  heartbeatSeconds: 15,
  retryLimit: exportAttempts - 1,
  retryBackoff: true,
  retryDelay: 4,
  retryDelayMax: 60,
  expireInSeconds: 6 * 3600,
  deleteAfterSeconds: 24 * 3600,
} satisfies Omit<Queue, 'name'>

const deadLetterQueueOptions = {
  retryLimit: 100,
  retryBackoff: true,
  retryDelayMax: 60,
  deleteAfterSeconds: 24 * 3600,
} satisfies Omit<Queue, 'name'>

/** Creates or migrates the tables and queues, as the owner. Takes a few milliseconds if they are current. */
export async function installQueue(client: pg.ClientBase): Promise<void> {
  const boss = new PgBoss({
    db: { executeSql: (text, values) => client.query(text, values) },
    schema: queueSchema,
    migrate: true,
    supervise: false,
    schedule: false,
  })
  // Without a listener, an 'error' event would throw. An error also rejects the promise of the call that failed.
  boss.on('error', () => {})
  await boss.start()
  try {
    // Creating a queue that exists changes nothing.
    await boss.createQueue(deadLetterQueue, deadLetterQueueOptions)
    await boss.createQueue(exportQueue, exportQueueOptions)
    const { policy: _, ...changeable } = exportQueueOptions
    await boss.updateQueue(exportQueue, changeable)
    await boss.updateQueue(deadLetterQueue, deadLetterQueueOptions)
  } finally {
    await boss.stop({ graceful: false, close: false })
  }
  await client.query(
    `grant usage on schema ${queueSchema} to grandlivre_service;
     grant select, insert, update, delete on all tables in schema ${queueSchema} to grandlivre_service`,
  )
}

/** Time limit of the statement. The connection is then given up: a silent server ends no statement. */
const standingMs = 2_000

interface QueueStanding {
  /** Full exports that no process has claimed. */
  length: number
  /**
   * Seconds for which the oldest export that may be claimed has waited; 0 if there is none. An export that was claimed
   * and found no thread or no connections has waited since it could first be claimed.
   */
  ageSeconds: number
}

/** Reads little: the entries that wait have an index of their own. */
export async function readQueueStanding(client: pg.ClientBase): Promise<QueueStanding> {
  const { rows } = await client.query<QueueStanding>(
    lookUp({
      name: 'queue-standing',
      text: `select count(*)::int as length,
        coalesce(extract(epoch from now() - min(coalesce((data ->> 'since')::timestamptz, start_after))
          filter (where start_after <= now() or data ? 'since')), 0)::float8 as "ageSeconds"
      from ${queueSchema}.job
      where name = $1 and state < 'active' and not blocked`,
      values: [exportQueue],
      waitMs: standingMs,
    }),
  )
  return rows[0]!
}
