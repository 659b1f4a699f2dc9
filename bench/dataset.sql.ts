import type { ClientBase } from 'pg'

/** Folder ids are drawn from one sequence: one folder has an id, whatever its tenant. */
export async function readTenantOf(
  client: ClientBase,
  folderId: string,
): Promise<{ schemaId: string; postgresVersion: string }> {
  const { rows } = await client.query<{ schemaId: string; postgresVersion: string }>(
    `select schema_id as "schemaId", current_setting('server_version') as "postgresVersion"
     from grandlivre.folders where id = $1`,
    [folderId],
  )
  return rows[0]!
}
