import type { ClientBase } from 'pg'
import type { YearOfFolder } from '../dataset.ts'

/** The validated entries of the year. */
export async function countEntries(client: ClientBase, year: YearOfFolder): Promise<number> {
  const { rows } = await client.query<{ entries: number }>(
    `select count(*)::integer as entries from grandlivre.entries
     where schema_id = $1 and folder_id = $2 and exercice_id = $3 and validated_at is not null`,
    [year.schemaId, year.folderId, year.exerciceId],
  )
  return rows[0]!.entries
}

/**
 * Changes the comment of validated entries of the year, in one statement.
 * @param edit a number; each picks other entries, anywhere in the year
 */
export async function editEntries(
  client: ClientBase,
  { schemaId, folderId, exerciceId }: YearOfFolder,
  count: number,
  edit: number,
): Promise<void> {
  await client.query(
    `with picked as materialized (
       select id from grandlivre.entries
       where schema_id = $1 and folder_id = $2 and exercice_id = $3 and validated_at is not null
       order by hashint8extended(id, $5::bigint), id limit $4
     )
     update grandlivre.entries e set comment = 'Correction ' || $5::text
     from picked p where (e.schema_id, e.folder_id, e.id) = ($1, $2, p.id)`,
    [schemaId, folderId, exerciceId, count, edit],
  )
}
