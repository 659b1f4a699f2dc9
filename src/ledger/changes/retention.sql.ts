/**
 * Keeps the log of changes small (docs/spec/changes.md#how-long-changes-are-remembered). Partners ask every few minutes
 * or days, and for that time the log is exact. Older changes are compacted, day by day, and in the end forgotten. Each
 * statement covers all tenants at once. Times are epoch milliseconds.
 */
import type { Pool } from 'pg'
import { limits } from '../../config.ts'
import { inTransaction } from '../../db/pool.ts'
import { queryValue } from '../../db/statement.ts'
import { inParts } from '../../db/sweeping.ts'

/** Rows per transaction: 60 ms on a log of a million rows. */
const rowsAtOnce = 10_000
const dayMs = 24 * 3_600_000

/**
 * Runs one sweep, as the service role. Changes are remembered for `retentionDays`.
 * @param now epoch milliseconds
 */
export async function sweepChanges(
  { database, retentionDays }: { database: Pool; retentionDays: number },
  now: number,
  stopped?: AbortSignal,
): Promise<{ forgotten: number; compacted: number }> {
  /** Repeats a statement that returns how many rows it removed, until it returns null. */
  const removed = (statement: string, before: number) =>
    inParts(stopped, () =>
      inTransaction(
        database,
        async (client) => (await queryValue<number | null>(client, statement, [before])) ?? undefined,
      ),
    )
  const forgotten = await removed(
    `select nullif(forget_ledger_changes(to_timestamp($1 / 1000.0), ${rowsAtOnce}), 0)::int`,
    now - retentionDays * dayMs,
  )
  // Only whole days: a part of a day would be joined apart from the rest of the day.
  const compacted = await removed(
    'select compact_ledger_changes(to_timestamp($1 / 1000.0))::int',
    Math.floor(now / dayMs - limits.changesExactDays) * dayMs,
  )
  return { forgotten, compacted }
}
