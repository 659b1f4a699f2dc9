import type { Pool } from 'pg'
import { lookUp } from './look-up.ts'

/** Number of the last migration that the database has applied. */
export async function readVersion(database: Pool): Promise<number> {
  const { rows } = await database.query<{ version: number }>(
    lookUp({ text: 'select max(version) as version from migrations' }),
  )
  return rows[0]?.version ?? 0
}
