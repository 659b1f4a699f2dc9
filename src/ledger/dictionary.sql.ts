/**
 * Reads the rows that movements refer to, all at once: a folder has few of each. Statements run inside the caller's
 * transaction.
 */
import type pg from 'pg'
import type { DictionaryRows } from '../formats/mad/dictionary.ts'

type Row = Record<string, string>

export async function readDictionary(
  client: pg.ClientBase,
  schemaId: string,
  folderId: string,
): Promise<DictionaryRows> {
  const rows = async <Result extends Row>(text: string): Promise<Result[]> =>
    (await client.query<Result>(text, [schemaId, folderId])).rows
  return {
    journals: await rows('select id, code, name, type from journals where schema_id = $1 and folder_id = $2'),
    accounts: await rows('select id, number, name from accounts where schema_id = $1 and folder_id = $2'),
    payments: await rows('select id, code from payments where schema_id = $1 and folder_id = $2'),
    axes: await rows('select id, code, name from axes where schema_id = $1 and folder_id = $2'),
    sections: await rows(
      'select id, axis_id as "axisId", code, name from sections where schema_id = $1 and folder_id = $2',
    ),
    thirdParties: (
      await client.query<{ id: string; code: string; name: string }>(
        'select id, code, name from third_parties',
      )
    ).rows,
  }
}
