import type { ClientBase } from 'pg'
import type { FolderKey } from '../../../src/formats/rows.ts'

/** Days are `YYYY-MM-DD`. Earliest first. */
export async function listExercices(client: ClientBase, folder: FolderKey) {
  const { rows } = await client.query<{ id: string; start: string; end: string }>(
    `select id, start_date::text as start, end_date::text as "end" from grandlivre.exercices
     where schema_id = $1 and folder_id = $2 order by start_date`,
    [folder.schemaId, folder.folderId],
  )
  return rows
}

export async function countMovements(client: ClientBase, folder: FolderKey) {
  const { rows } = await client.query<{ count: string }>(
    `select count(*) from grandlivre.movements where schema_id = $1 and folder_id = $2`,
    [folder.schemaId, folder.folderId],
  )
  return Number(rows[0]?.count)
}

/**
 * Deletes the folder's ended full exports and returns the keys of their files, which are then orphans. Runs as the
 * owner.
 */
export async function forgetExports(client: ClientBase, folder: FolderKey) {
  const { rows } = await client.query<{ fileKey: string | null }>(
    `delete from grandlivre.exports
     where schema_id = $1 and folder_id = $2 and state in ('done', 'failed')
     returning file_key as "fileKey"`,
    [folder.schemaId, folder.folderId],
  )
  return rows.flatMap(({ fileKey }) => fileKey ?? [])
}

/**
 * Changes the comment of validated entries, anywhere in the exercice, or of all of them if there are fewer.
 * @returns how many
 */
export async function correctComments(
  client: ClientBase,
  { folderId, exerciceId }: { folderId: string; exerciceId: string },
  count: number,
): Promise<number> {
  const { rowCount } = await client.query(
    `update grandlivre.entries set comment = 'Corrected at ' || now()
     where folder_id = $1 and id in (
       select id from grandlivre.entries
       where folder_id = $1 and exercice_id = $2 and validated_at is not null
       order by hashint8(id) limit $3
     )`,
    [folderId, exerciceId, count],
  )
  return rowCount ?? 0
}
