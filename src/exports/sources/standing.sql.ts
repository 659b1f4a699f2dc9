/** What a server says of itself and of a ledger: whether exports may read there. */
import type pg from 'pg'
import { idLiteral, textLiteral } from '../../db/literal.ts'
import { lookUp } from '../../db/look-up.ts'
import type { FolderKey } from '../../formats/rows.ts'
import type { CursorRefusal } from '../../ledger/changes/refuse.ts'

/** A state of a folder's ledger. */
export interface SeenState extends FolderKey {
  /** Names it; of any rendering. */
  cursor: string
}

export interface Standing {
  /** Whether the server replays the log of another one. */
  isReplica: boolean
  /** Equal for two addresses of one database: no two servers start in the same microsecond. */
  server: string
  /** Why the state is not part of what this snapshot shows; `none` if it is; null if the folder is not there. */
  refusal: CursorRefusal | 'none' | null
  /** Of the folder's ledger, in digits; null if the folder is not there. */
  version: string | null
}

/** As in `Standing`. */
export const serverExpression = `(select format('%s of %s', oid, extract(epoch from pg_postmaster_start_time()))
  from pg_database where datname = current_database())`

/** The standing, as an SQL expression of type json, in a transaction of the tenant. */
export function standingExpression({ schemaId, folderId, cursor }: SeenState): string {
  const [schema, folder] = [idLiteral(schemaId), idLiteral(folderId)]
  const rendering = textLiteral(cursor.split('.')[2] ?? '')
  return `json_build_object('isReplica', pg_is_in_recovery(), 'server', ${serverExpression},
    'refusal', (select coalesce(refusal, 'none') from read_ledger_cursor(${textLiteral(cursor)}, ${schema}, ${folder}, ${rendering})),
    'version', (select ledger_version::text from folders where schema_id = ${schema} and id = ${folder}))`
}

/** As in `Standing`. @throws {Error} if the database does not answer */
export async function readServer(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<{ server: string }>(
    lookUp({ text: `select ${serverExpression} as server` }),
  )
  return rows[0]!.server
}
