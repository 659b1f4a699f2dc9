/**
 * Deletes expired events and ended deliveries. By then every delivery of an event has ended, and staff have had weeks
 * to replay it: retries take three days, and a subscription without a success for five days is disabled. Events that
 * were never collected stay, except those that only disabled or disconnected subscriptions would receive.
 */
import type { Pool } from 'pg'
import { limits } from '../config.ts'
import { whileDelivering } from '../db/pool.ts'
import { startSweeping } from '../db/sweeping.ts'
import type { Log } from '../log.ts'
import { deleteDeliveries, deleteEvents, listSchemas } from './retention.sql.ts'

export interface EventRetentionParts {
  /** Connects as the service role. */
  database: Pool
  log: Log
}

/** Rows per transaction: some tenths of a second, during which nothing waits for their locks. */
const rowsAtOnce = 10_000
const dayMs = 24 * 3_600_000

/** Sweeps at once and then every hour, until closed. */
export function startEventRetention({ database, log }: EventRetentionParts): { close(): Promise<void> } {
  return startSweeping({
    database,
    name: 'retention of events',
    everyMs: limits.retentionEveryMs,
    sweep: async (stopped) => {
      const swept = await sweepEvents(database, Date.now(), stopped)
      if (swept.events + swept.deliveries > 0) log('retention.eventsSwept', swept)
    },
    onError: (error) => log('retention.error', { error }),
  })
}

/** Runs one sweep. @param now epoch milliseconds */
export async function sweepEvents(
  database: Pool,
  now: number,
  stopped?: AbortSignal,
): Promise<{ events: number; deliveries: number }> {
  const before = now - limits.eventRetentionDays * dayMs
  const swept = { events: 0, deliveries: 0 }
  for (const schemaId of await whileDelivering(database, listSchemas))
    for (const [what, remove] of [
      ['deliveries', deleteDeliveries],
      ['events', deleteEvents],
    ] as const) {
      let removed: number
      do {
        stopped?.throwIfAborted()
        removed = await whileDelivering(database, (client) => remove(client, schemaId, before, rowsAtOnce))
        swept[what] += removed
      } while (removed === rowsAtOnce)
    }
  return swept
}
