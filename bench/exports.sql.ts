import type { ClientBase } from 'pg'

/** Full exports of a folder that have ended; gives the keys of their files. As the owner. */
export async function forgetExports(client: ClientBase, folderId: string): Promise<string[]> {
  const { rows } = await client.query<{ fileKey: string | null }>(
    `delete from grandlivre.exports where folder_id = $1 and state in ('done', 'failed')
     returning file_key as "fileKey"`,
    [folderId],
  )
  return rows.flatMap(({ fileKey }) => fileKey ?? [])
}
