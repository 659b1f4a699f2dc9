/** Statements of retention on the log of changes, of all tenants at once. Times are epoch milliseconds. */
import type { ClientBase } from 'pg'

/** Forgets the oldest changes that were logged before that time, at most `most`. @returns how many */
export async function forgetChanges(client: ClientBase, before: number, most: number): Promise<number> {
  const { rows } = await client.query<{ forgotten: string }>(
    'select forget_ledger_changes(to_timestamp($1 / 1000.0), $2) as forgotten',
    [before, most],
  )
  return Number(rows[0]!.forgotten)
}

/**
 * Joins the changes of the first day that has not been compacted, in its part before that time.
 * @returns how many rows fewer there are; undefined if no such day is left
 */
export async function compactChanges(client: ClientBase, before: number): Promise<number | undefined> {
  const { rows } = await client.query<{ gone: string | null }>(
    'select compact_ledger_changes(to_timestamp($1 / 1000.0)) as gone',
    [before],
  )
  const { gone } = rows[0]!
  return gone === null ? undefined : Number(gone)
}
