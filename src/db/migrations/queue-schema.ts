/**
 * The tables of the queue, which the library pg-boss makes and migrates in a schema of its own. Its owner is the owner
 * of the ledger; the service role only uses them, and the rows in them name exports and hold nothing of a ledger.
 */
import type pg from 'pg'
import { PgBoss, type Queue } from 'pg-boss'

export const queueSchema = 'pgboss'

/** One entry for each export that is to be made, until it has ended. */
export const exportQueue = 'exports'
/** Exports whose process died in the last attempt: nobody was left to say that they failed. */
export const deadLetterQueue = 'exports_abandoned'

/** Attempts of one export before it has failed. */
export const exportAttempts = 3

/**
 * How pg-boss keeps the exports: one entry for each; a process that was not heard of for fifteen seconds has lost its
 * export (ten is the least that can be set, and little where processor or disk are overloaded); 4 to 8 seconds before
 * the second attempt, 8 to 16 before the third, in which a database has restarted; no export takes six hours.
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

/** Makes or migrates the tables and queues, as the owner; a few milliseconds where nothing is to be done. */
export async function installQueue(client: pg.ClientBase): Promise<void> {
  const boss = new PgBoss({
    db: { executeSql: (text, values) => client.query(text, values) },
    schema: queueSchema,
    migrate: true,
    supervise: false,
    schedule: false,
  })
  // What fails is rejected as well.
  boss.on('error', () => {})
  await boss.start()
  try {
    // Creating a queue that is there changes nothing.
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
