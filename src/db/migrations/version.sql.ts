import type { Pool } from 'pg'
import { lookUp } from '../look-up.ts'
import { type AppliedMigration, oldestCodeFor } from './schema-files.ts'

export async function readVersion(database: Pool) {
  const { rows } = await database.query<AppliedMigration & { isReadOnly: boolean }>(
    lookUp({
      text: `select version, name, current_setting('transaction_read_only') = 'on' as "isReadOnly" from migrations`,
    }),
  )
  return {
    /** Number of the last migration that the database has applied. */
    version: Math.max(0, ...rows.map(({ version }) => version)),
    /** Code of an older version cannot use the database. */
    oldestCode: oldestCodeFor(rows),
    /** The server takes no changes: it is a standby, or its administrator has stopped them. */
    isReadOnly: rows[0]?.isReadOnly === true,
  }
}
