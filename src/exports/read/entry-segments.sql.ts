import type pg from 'pg'
import type { FolderKey } from '../../formats/rows.ts'
import type { ExerciceSpan } from './entry-segments.ts'

/**
 * Returns the span of each exercice that has selected entries. Counting stops once a span has proved sparse, so that it
 * costs no more than the selection itself.
 * @param among conditions on all entries `e` that count as lying within a span: those of the folder
 * @param selecting further conditions, on the selected entries
 */
export async function findSpans(client: pg.ClientBase, among: string[], selecting: string[]) {
  const { rows } = await client.query<ExerciceSpan>(
    `with spans as (
       select e.exercice_id, min(e.id) as least, max(e.id) as greatest, count(*) as selected
       from entries e where ${[...among, ...selecting].join(' and ')} group by e.exercice_id
     )
     select exercice_id as "exerciceId", least, greatest, 2 * selected >= (
       select count(*) from (
         select from entries e
         where ${among.join(' and ')} and e.exercice_id = spans.exercice_id and e.id between least and greatest
         limit 2 * selected + 1
       ) as spanned
     ) as dense
     from spans`,
  )
  return rows
}

/** The same of all entries of a folder, from both ends of an index: 0.1 ms of the database instead of 0.6. */
export async function readFolderSpans(client: pg.ClientBase, { schemaId, folderId }: FolderKey) {
  const { rows } = await client.query<ExerciceSpan>({
    name: 'spans of a folder',
    text: `select x.id as "exerciceId", s.*, true as dense
           from exercices x cross join lateral (
             select min(e.id) as least, max(e.id) as greatest from entries e
             where e.schema_id = $1 and e.folder_id = $2 and e.exercice_id = x.id) s
           where x.schema_id = $1 and x.folder_id = $2 and s.least is not null`,
    values: [schemaId, folderId],
  })
  return rows
}
