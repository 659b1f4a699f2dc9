/** What a bench of many full exports reads of them, as the owner of the database. */
import type { Pool } from 'pg'

/** The next trigger of a folder starts a new export. */
export async function forgetExports(owner: Pool): Promise<void> {
  await owner.query('update grandlivre.exports set latest = false where latest')
}

/** How many have not ended. */
export async function countUnended(owner: Pool): Promise<number> {
  const { rows } = await owner.query<{ count: number }>(
    `select count(*)::int as count from grandlivre.exports where latest and state in ('queued', 'running')`,
  )
  return rows[0]!.count
}

/** All that are left wait no longer. */
export async function dropWaiting(owner: Pool): Promise<void> {
  await owner.query(`delete from pgboss.job where name = 'exports' and state < 'active'`)
}

export interface RunOfExport {
  state: string
  /** Epoch seconds of the database's clock: of the trigger, and of the end if there is one. */
  triggered: number
  ended: number | null
  rows: string
  debit: string | null
  credit: string | null
}

/** In the order of the triggers. */
export async function readRuns(owner: Pool): Promise<RunOfExport[]> {
  const { rows } = await owner.query<RunOfExport>(
    `select state, extract(epoch from created_at)::float8 as triggered,
       extract(epoch from finished_at)::float8 as ended, rows, debit, credit
     from grandlivre.exports where latest order by created_at`,
  )
  return rows
}
