/** Reads the rows that movements refer to, all at once: a folder has few of each. */
import type pg from 'pg'
import { idLiteral } from '../db/literal.ts'
import type { DictionaryRows } from '../formats/mad/dictionary.ts'
import type { FolderKey } from '../formats/rows.ts'

/**
 * Inside the caller's transaction, in one round trip. Six statements in one message cost the database 0.35 ms, one
 * after the other 0.72; as parts of one `union all` 0.49.
 */
export async function readDictionary(client: pg.ClientBase, folder: FolderKey): Promise<DictionaryRows> {
  const ofFolder = `where schema_id = ${idLiteral(folder.schemaId)} and folder_id = ${idLiteral(folder.folderId)}`
  const results = await client.query(
    [
      `select id, code, name, type from journals ${ofFolder}`,
      `select id, number, name from accounts ${ofFolder}`,
      `select id, code from payments ${ofFolder}`,
      `select id, code, name from axes ${ofFolder}`,
      `select id, axis_id as "axisId", code, name from sections ${ofFolder}`,
      'select id, code, name from third_parties',
    ].join('; '),
  )
  // The types of pg know only messages of one statement.
  const [journals, accounts, payments, axes, sections, thirdParties] = (
    results as unknown as pg.QueryResult[]
  ).map(({ rows }) => rows)
  return { journals, accounts, payments, axes, sections, thirdParties } as unknown as DictionaryRows
}
