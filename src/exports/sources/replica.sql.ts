/** How far a replica has come. */
import type { Pool } from 'pg'
import { lookUp } from '../../db/look-up.ts'
import { serverExpression } from './standing.sql.ts'

/** Of the main database: its server, as in `Standing`, and the end of its log. */
export async function readWritten(main: Pool): Promise<{ server: string; written: string }> {
  const { rows } = await main.query<{ server: string; written: string }>(
    lookUp({ text: `select ${serverExpression} as server, pg_current_wal_lsn()::text as written` }),
  )
  return rows[0]!
}

interface Replay {
  server: string
  isReplica: boolean
  /** How many of the positions it has replayed. */
  reached: number
  /** Age of the last commit that it has replayed, by its own clock; null if there was none since its start. */
  commitAgeSeconds: number | null
}

/** @param positions in the log of the main database, ascending */
export async function readReplay(replica: Pool, positions: string[]): Promise<Replay> {
  const { rows } = await replica.query<Replay>(
    lookUp({
      text: `select ${serverExpression} as server, pg_is_in_recovery() as "isReplica",
          (select count(*)::int from unnest($1::text[]) position
           where position::pg_lsn <= pg_last_wal_replay_lsn()) as reached,
          extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())::float8 as "commitAgeSeconds"`,
      values: [positions],
    }),
  )
  return rows[0]!
}
