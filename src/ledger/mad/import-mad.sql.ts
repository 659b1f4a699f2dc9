/** Single statements of an import of a MAD file. */
import type { ClientBase } from 'pg'
import type { FolderKey } from '../../formats/rows.ts'

/** Ids of all registered third parties by their code. */
export async function thirdPartyIds(client: ClientBase): Promise<Map<string, string>> {
  const { rows } = await client.query<{ code: string; id: string }>(
    'select code, id from grandlivre.third_parties',
  )
  return new Map(rows.map(({ code, id }) => [code, id]))
}

export async function setCurrency(client: ClientBase, { schemaId, folderId }: FolderKey, currency: string) {
  const values = [schemaId, folderId, currency]
  await client.query('update grandlivre.folders set currency = $3 where schema_id = $1 and id = $2', values)
}
