/** Reads the folders that a token opens: their ids and the cursors of their ledgers. */
import type { Pool } from 'pg'
import type { Principal } from '../../../auth/principal.ts'
import { idLiteral } from '../../../db/literal.ts'
import { askInTenant } from '../../../db/pool.ts'
import { cursorExpression } from '../../../ledger/changes/cursor.sql.ts'

type TokenScope = Pick<Principal, 'schemaId' | 'firmId' | 'folderId'>

/**
 * Reads the ids, ascending as numbers.
 * @param only the one folder that the request concerns
 */
export async function readOpenedIds(
  database: Pool,
  caller: TokenScope,
  only: string | undefined,
): Promise<string[]> {
  const text = `select id from folders where ${openedFolders(caller)} ${only === undefined ? '' : `and id = ${idLiteral(only)}`}
    order by id`
  return (await askInTenant<{ id: string }>(database, caller.schemaId, text)).map(({ id }) => id)
}

/** Reads the cursor of a folder's ledger. Undefined if the folder does not exist, or the token does not open it. */
export async function readOpenedCursor(
  database: Pool,
  caller: TokenScope,
  folderId: string,
  timeZone: string,
): Promise<string | undefined> {
  const text = `select ${cursorExpression(timeZone)} as cursor from folders
    where ${openedFolders(caller)} and id = ${idLiteral(folderId)}`
  return (await askInTenant<{ cursor: string }>(database, caller.schemaId, text))[0]?.cursor
}

function openedFolders({ schemaId, firmId, folderId }: TokenScope): string {
  const ids = folderId === null ? `firm_id = ${idLiteral(firmId)}` : `id = ${idLiteral(folderId)}`
  return `schema_id = ${idLiteral(schemaId)} and ${ids}`
}
