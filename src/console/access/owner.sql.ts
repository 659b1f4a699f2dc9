import type { Pool } from 'pg'

/** @throws {Error} if this login does not own the tables: row-level security would hide them from the console */
export async function checkOwner(owner: Pool): Promise<void> {
  const { rows } = await owner.query<{ owns: boolean; login: string }>(
    `select pg_has_role(nspowner, 'USAGE') as owns, current_user as login
     from pg_namespace where nspname = 'grandlivre'`,
  )
  if (rows[0]?.owns) return
  throw new Error(
    `CONSOLE_PORT is set, but the login ${rows[0]?.login} does not own the tables, and the console shows the tables of ` +
      'all tenants: set DIRECT_DATABASE_URL (or DATABASE_URL, if DIRECT_DATABASE_URL is not set) to the address of ' +
      'their owner, or run the console in another process that has this address',
  )
}
