import type { Pool } from 'pg'

/** The application names of sessions that are still there, by process id. Any program may have chosen them. */
export async function applicationNames(pool: Pool, pids: readonly string[]): Promise<Map<string, string>> {
  const { rows } = await pool.query<{ pid: string; name: string }>(
    `select pid::text, application_name as name from pg_stat_activity where pid = any ($1::integer[])`,
    [pids],
  )
  return new Map(rows.map(({ pid, name }) => [pid, name]))
}
