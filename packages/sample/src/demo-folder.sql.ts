/** SQL statements of the demo, which connects as the owner of the tables. */
import type { ClientBase } from 'pg'
import { queryCount, queryRows, queryValue } from '../../../src/db/statement.ts'
import type { FolderKey } from '../../../src/formats/rows.ts'

/** The exercices of a folder, earliest first. Days are `YYYY-MM-DD`. */
export function listExercices(client: ClientBase, { schemaId, folderId }: FolderKey) {
  return queryRows<{ id: string; start: string; end: string }>(
    client,
    `select id, start_date::text as start, end_date::text as "end" from grandlivre.exercices
     where schema_id = $1 and folder_id = $2 order by start_date`,
    [schemaId, folderId],
  )
}

export function countMovements(client: ClientBase, { schemaId, folderId }: FolderKey) {
  const text = 'select count(*)::integer from grandlivre.movements where schema_id = $1 and folder_id = $2'
  return queryValue<number>(client, text, [schemaId, folderId])
}

/** Deletes the folder's ended full exports. @returns the keys of their files, which then belong to no export */
export async function forgetExports(client: ClientBase, { schemaId, folderId }: FolderKey) {
  const rows = await queryRows<{ file_key: string | null }>(
    client,
    `delete from grandlivre.exports
     where schema_id = $1 and folder_id = $2 and state in ('done', 'failed') returning file_key`,
    [schemaId, folderId],
  )
  return rows.flatMap(({ file_key }) => file_key ?? [])
}

/**
 * Changes the comments of up to `count` validated entries from all over the exercice.
 * @returns how many were changed
 */
export function correctComments(
  client: ClientBase,
  { folderId, exerciceId }: { folderId: string; exerciceId: string },
  count: number,
): Promise<number> {
  return queryCount(
    client,
    `update grandlivre.entries set comment = 'Corrected at ' || now()
     where folder_id = $1 and id in (
       select id from grandlivre.entries
       where folder_id = $1 and exercice_id = $2 and validated_at is not null
       order by hashint8(id) limit $3
     )`,
    [folderId, exerciceId, count],
  )
}
