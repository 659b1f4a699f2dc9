import type { Pool } from 'pg'
import { lookUp } from '../statement.ts'
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
    /** The oldest version of the code that can use the database. */
    oldestCode: oldestCodeFor(rows),
    /** The server takes no changes: it is a standby, or its administrator has stopped them. */
    isReadOnly: rows[0]?.isReadOnly === true,
  }
}

/** The epoch of the database (functions/epoch.sql). */
export interface Epoch {
  /** The number, as cursors contain it. */
  number: number
  /** ISO 8601. */
  began: string
  ageSeconds: number
}

export async function readEpoch(database: Pool): Promise<Epoch> {
  const { rows } = await database.query<{ number: number; began: number; age: number }>(
    lookUp({
      text: `select e.last_value::int as number, b.last_value::float8 as began,
          greatest(extract(epoch from clock_timestamp()) - b.last_value, 0)::float8 as age
        from grandlivre.epoch e, grandlivre.epoch_began b`,
    }),
  )
  const { number, began, age } = rows[0]!
  return { number, began: new Date(began * 1_000).toISOString(), ageSeconds: age }
}
