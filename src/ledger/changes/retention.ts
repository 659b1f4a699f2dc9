/**
 * Keeps the log of changes small (docs/spec/changes.md#how-long-changes-are-remembered). Partners ask every few minutes
 * or days: for them the log is exact. Older changes are compacted, day by day, and at last forgotten.
 */
import type { Pool, PoolClient } from 'pg'
import { limits } from '../../config.ts'
import { inTransaction } from '../../db/pool.ts'
import { inParts } from '../../db/sweeping.ts'
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
  const all = (part: (client: PoolClient) => Promise<number | undefined>) =>
    inParts(stopped, () => inTransaction(database, part))
  const forgottenBefore = now - retentionDays * dayMs
  const forgotten = await all(
    async (client) => (await forgetChanges(client, forgottenBefore, rowsAtOnce)) || undefined,
  )
  // A part of a day would be joined apart from the rest of it.
  const compactedBefore = Math.floor(now / dayMs - limits.changesExactDays) * dayMs
  return { forgotten, compacted: await all((client) => compactChanges(client, compactedBefore)) }
}
