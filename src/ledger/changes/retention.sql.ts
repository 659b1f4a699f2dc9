/**
 * Keeps the log of changes small (docs/spec/changes.md#how-long-changes-are-remembered). Partners ask every few minutes
 * or days, and for that time the log is exact. Older changes are compacted, day by day, and in the end forgotten. Each
 * statement covers all tenants at once. Times are epoch milliseconds.
 */
import type { ClientBase, Pool, PoolClient } from 'pg'
import { limits } from '../../config.ts'
import { inTransaction } from '../../db/pool.ts'
import { inParts } from '../../db/sweeping.ts'

/**
 * Forgets the oldest changes, at most `most`, that were logged before the time `before`. @returns how many were
 * forgotten
 */
async function forgetChanges(client: ClientBase, before: number, most: number): Promise<number> {
  const { rows } = await client.query<{ forgotten: string }>(
    'select forget_ledger_changes(to_timestamp($1 / 1000.0), $2) as forgotten',
    [before, most],
  )
  return Number(rows[0]!.forgotten)
}

/**
 * Joins the changes of the first day that is not compacted yet, as far as they were logged before the time `before`.
 * @returns by how many rows the log has shrunk; undefined if no such day is left
 */
async function compactChanges(client: ClientBase, before: number): Promise<number | undefined> {
  const { rows } = await client.query<{ gone: string | null }>(
    'select compact_ledger_changes(to_timestamp($1 / 1000.0)) as gone',
    [before],
  )
  const { gone } = rows[0]!
  return gone === null ? undefined : Number(gone)
}

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
  const all = (part: (client: PoolClient) => Promise<number | undefined>) =>
    inParts(stopped, () => inTransaction(database, part))
  const forgottenBefore = now - retentionDays * dayMs
  const forgotten = await all(
    async (client) => (await forgetChanges(client, forgottenBefore, rowsAtOnce)) || undefined,
  )
  // Only whole days: a part of a day would be joined apart from the rest of the day.
  const compactedBefore = Math.floor(now / dayMs - limits.changesExactDays) * dayMs
  return { forgotten, compacted: await all((client) => compactChanges(client, compactedBefore)) }
}
