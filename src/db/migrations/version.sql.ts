import type { Pool } from 'pg'
import { lookUp } from '../look-up.ts'
import { type AppliedMigration, oldestCodeFor } from './schema-files.ts'

export interface DatabaseVersion {
  /** Number of the last migration that the database has applied. */
  version: number
  /** Code of an older version cannot use the database. */
  oldestCode: number
}

export async function readVersion(database: Pool): Promise<DatabaseVersion> {
  const { rows } = await database.query<AppliedMigration>(
    lookUp({ text: 'select version, name from migrations' }),
  )
  return { version: Math.max(0, ...rows.map(({ version }) => version)), oldestCode: oldestCodeFor(rows) }
}
