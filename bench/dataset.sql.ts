import type { ClientBase } from 'pg'

export interface TenantOf {
  schemaId: string
  postgresVersion: string
  /** Of the connection that asks: a child of the postmaster. */
  backendPid: number
}

/** Folder ids are drawn from one sequence: one folder has an id, whatever its tenant. */
export async function readTenantOf(client: ClientBase, folderId: string): Promise<TenantOf> {
  const { rows } = await client.query<TenantOf>(
    `select schema_id as "schemaId", current_setting('server_version') as "postgresVersion",
       pg_backend_pid() as "backendPid"
     from grandlivre.folders where id = $1`,
    [folderId],
  )
  return rows[0]!
}
