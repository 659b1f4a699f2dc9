/**
 * Keeps the log of changes small (docs/spec/changes.md#how-long-changes-are-remembered). Partners ask every few minutes
 * or days: for them the log is exact. Older changes are compacted, day by day, and at last forgotten.
 */
import type { Pool } from 'pg'
import { limits } from '../../config.ts'
import { inTransaction } from '../../db/pool.ts'
import { compactChanges, forgetChanges } from './retention.sql.ts'

/** Rows per transaction: 60 ms on a log of a million rows. */
const rowsAtOnce = 10_000
const dayMs = 24 * 3_600_000

/**
 * One sweep, as the service role. Changes are remembered for `retentionDays`.
 * @param now epoch milliseconds
 */
export async function sweepChanges(
  { database, retentionDays }: { database: Pool; retentionDays: number },
  now: number,
  stopped?: AbortSignal,
): Promise<{ forgotten: number; compacted: number }> {
  const swept = { forgotten: 0, compacted: 0 }
  const forgottenBefore = now - retentionDays * dayMs
  let forgotten: number
  do {
    stopped?.throwIfAborted()
    forgotten = await inTransaction(database, (client) => forgetChanges(client, forgottenBefore, rowsAtOnce))
    swept.forgotten += forgotten
  } while (forgotten === rowsAtOnce)
  // A part of a day would be joined apart from the rest of it.
  const compactedBefore = Math.floor(now / dayMs - limits.changesExactDays) * dayMs
  for (;;) {
    stopped?.throwIfAborted()
    const compacted = await inTransaction(database, (client) => compactChanges(client, compactedBefore))
    if (compacted === undefined) return swept
    swept.compacted += compacted
  }
}
