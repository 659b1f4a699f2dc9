/**
 * Deletes expired events with their numbers, and ended deliveries. By then every delivery of an event has ended, and its
 * subscriber has had weeks to read it or have it replayed: retries take three days, and a subscription without a success
 * for five days is disabled. Events that are still to be delivered stay, except for subscriptions that are disabled or
 * only read, or whose third party is disconnected: those get their number first, and show a gap.
 */
import type { Pool, PoolClient } from 'pg'
import { limits } from '../config.ts'
import { whileDelivering } from '../db/pool.ts'
import {
  deleteDeliveries,
  deleteEvents,
  deleteFormerFilters,
  deleteRuns,
  findUnnumbered,
  listSchemas,
} from './retention.sql.ts'
import { numberInParts } from './sequence/number-in-parts.ts'

/** Rows per transaction: some tenths of a second, during which nothing waits for their locks. */
const rowsAtOnce = 10_000
const dayMs = 24 * 3_600_000

/** One sweep. @param database connects as the service role. @param now epoch milliseconds */
export async function sweepEvents(
  database: Pool,
  now: number,
  stopped?: AbortSignal,
): Promise<{ events: number; deliveries: number }> {
  const before = now - limits.eventRetentionDays * dayMs
  const swept = { events: 0, deliveries: 0 }
  for (const schemaId of await whileDelivering(database, listSchemas)) {
    await numberExpired(database, schemaId, before, stopped)
    const all = async (remove: (client: PoolClient) => Promise<number>): Promise<number> => {
      let removed = 0
      for (;;) {
        stopped?.throwIfAborted()
        const part = await whileDelivering(database, remove)
        removed += part
        // A part may be small although more is left.
        if (part === 0) return removed
      }
    }
    swept.deliveries += await all((client) => deleteDeliveries(client, schemaId, before, rowsAtOnce))
    swept.events += await all((client) => deleteEvents(client, schemaId, before, rowsAtOnce))
    await all((client) => deleteRuns(client, schemaId, rowsAtOnce))
    await whileDelivering(database, (client) => deleteFormerFilters(client, schemaId))
  }
  return swept
}

/**
 * Numbers what is about to be deleted, for subscriptions that do not collect it: their next delivery or reader then sees
 * by the numbers how much is gone.
 */
async function numberExpired(
  database: Pool,
  schemaId: string,
  before: number,
  stopped: AbortSignal | undefined,
): Promise<void> {
  const subscriptionIds = await whileDelivering(database, (client) =>
    findUnnumbered(client, schemaId, before),
  )
  for (const subscriptionId of subscriptionIds) {
    stopped?.throwIfAborted()
    await numberInParts((run) => whileDelivering(database, run), subscriptionId)
  }
}
