/** Reads the rows that flat files repeat, all at once: a folder has few of each. */
import type pg from 'pg'
import type { FlatDictionaryRows } from '../../formats/flat/dictionary.ts'
import type { FolderKey } from '../../formats/rows.ts'

/** Undefined if the folder does not exist. */
export async function readFlatDictionary(client: pg.ClientBase, { schemaId, folderId }: FolderKey) {
  const list = (row: string, table: string) => `array(select json_build_object(${row}) from ${table}
    where t.schema_id = f.schema_id and t.folder_id = f.id)`
  const { rows } = await client.query<FlatDictionaryRows>(
    `select
       ${list("'id', t.id::text, 'code', code, 'name', name, 'type', type", 'journals t')} as journals,
       ${list(
         `'id', t.id::text, 'number', number, 'name', name, 'auxiliaryNumber', auxiliary_number,
          'auxiliaryName', auxiliary_name`,
         'accounts t',
       )} as accounts,
       ${list("'id', t.id::text, 'code', code", 'payments t')} as payments,
       ${list(
         `'id', t.id::text, 'code', t.code, 'axisCode', x.code`,
         `sections t join axes x on (x.schema_id, x.folder_id, x.id) = (t.schema_id, t.folder_id, t.axis_id)`,
       )} as sections
     from folders f where f.schema_id = $1 and f.id = $2`,
    [schemaId, folderId],
  )
  return rows[0]
}
