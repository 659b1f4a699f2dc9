import type { ClientBase } from 'pg'

export interface TenantOf {
  schemaId: string
  postgresVersion: string
  /** The backend of this connection: a child of the postmaster. */
  backendPid: number
}

/** Folder ids come from one sequence: an id identifies a folder in any tenant. */
export async function readTenantOf(client: ClientBase, folderId: string): Promise<TenantOf> {
  const { rows } = await client.query<TenantOf>(
    `select schema_id as "schemaId", current_setting('server_version') as "postgresVersion",
       pg_backend_pid() as "backendPid"
     from grandlivre.folders where id = $1`,
    [folderId],
  )
  return rows[0]!
}
