import type { Pool } from 'pg'

/** The application names of sessions that still exist, by process id. A program can choose any application name. */
export async function applicationNames(pool: Pool, pids: readonly string[]): Promise<Map<string, string>> {
  const { rows } = await pool.query<{ pid: string; name: string }>(
    `select pid::text, application_name as name from pg_stat_activity where pid = any ($1::integer[])`,
    [pids],
  )
  return new Map(rows.map(({ pid, name }) => [pid, name]))
}
