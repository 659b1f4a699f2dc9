/** What a server reports of itself and of a ledger. This decides whether exports may read there. */

import type pg from 'pg'
import { idLiteral, textLiteral } from '../../db/literal.ts'
import { type Connection, lookUp, queryRow, queryValue } from '../../db/statement.ts'
import type { FolderKey } from '../../formats/rows.ts'
import type { CursorRefusal } from '../../ledger/changes/cursor.sql.ts'

/** A state of a folder's ledger. */
export interface SeenState extends FolderKey {
  /** The cursor that names the state; its rendering does not matter. */
  cursor: string
}

/** The epoch of a state. Each failover begins another epoch. */
export function epochOf({ cursor }: SeenState): string | undefined {
  return cursor.split('.')[1]
}

export interface ShownState {
  /** Whether the server replays the log of another one. */
  isReplica: boolean
  /** Why this snapshot does not show the state; `none` if it does; null if the folder is not there. */
  refusal: CursorRefusal | 'none' | null
}

/**
 * An SQL expression of type json that says what the server shows of a state, in a transaction of the tenant. It takes a
 * quarter of a millisecond of processor time, of the 50 of a small export.
 */
export function shownExpression({ schemaId, folderId, cursor }: SeenState): string {
  const given = [textLiteral(cursor), idLiteral(schemaId), idLiteral(folderId)]
  const rendering = textLiteral(cursor.split('.')[2] ?? '')
  return `json_build_object('isReplica', pg_is_in_recovery(), 'refusal',
    (select coalesce(refusal, 'none') from read_ledger_cursor(${given.join(', ')}, ${rendering})))`
}

/** Names a server. Two addresses of one database have the same name: no two servers start in the same microsecond. */
const serverExpression = `(select format('%s of %s', oid, extract(epoch from pg_postmaster_start_time()))
  from pg_database where datname = current_database())`

/**
 * Reads the name of a server.
 * @throws {Error} if the database does not answer in time
 */
export function readServer(database: Connection): Promise<string> {
  return queryValue(database, lookUp({ text: `select ${serverExpression}` }))
}

/** Reads the server of the main database, as `readServer` names it, and the end of its log. */
export async function readWritten(main: pg.Pool) {
  const text = `select ${serverExpression} as server, pg_current_wal_lsn()::text as written`
  return (await queryRow<{ server: string; written: string }>(main, lookUp({ text })))!
}

interface Replay {
  server: string
  isReplica: boolean
  /** How many of the given positions the replica has replayed. */
  reached: number
  /** Age of the last commit that it has replayed, by its own clock; null if there was none since its start. */
  commitAgeSeconds: number | null
}

/** @param positions in the log of the main database, ascending */
export async function readReplay(replica: pg.Pool, positions: string[]): Promise<Replay> {
  const text = `select ${serverExpression} as server, pg_is_in_recovery() as "isReplica",
      (select count(*)::int from unnest($1::text[]) position
       where position::pg_lsn <= pg_last_wal_replay_lsn()) as reached,
      extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())::float8 as "commitAgeSeconds"`
  return (await queryRow<Replay>(replica, lookUp({ text, values: [positions] })))!
}
