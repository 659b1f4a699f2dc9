/** Statements of retention on the table of full exports. All but the first run inside a transaction of the tenant. */
import type { ClientBase } from 'pg'
import type { JobState } from '../job.ts'
import type { ExportKey } from '../jobs.sql.ts'

export async function tenantsWithExports(client: ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ schema_id: string }>(
    'select tenants_with_exports() as schema_id order by 1',
  )
  return rows.map((row) => row.schema_id)
}

/**
 * Finds the files to remove. Their exports ended longer ago than the retention period plus the life of a link, so that
 * no valid link leads to a removed file.
 */
export async function expiredFiles(
  client: ClientBase,
  schemaId: string,
  { retentionDays, linkSeconds }: { retentionDays: number; linkSeconds: number },
): Promise<{ exportId: string; fileKey: string }[]> {
  const { rows } = await client.query<{ exportId: string; fileKey: string }>(
    `select id as "exportId", file_key as "fileKey" from exports
     where schema_id = $1 and file_key is not null
       and finished_at < now() - make_interval(days => $2, secs => $3)`,
    [schemaId, retentionDays, linkSeconds],
  )
  return rows
}

export async function forgetFile(client: ClientBase, { schemaId, exportId }: ExportKey): Promise<void> {
  await client.query('update exports set file_key = null where schema_id = $1 and id = $2', [
    schemaId,
    exportId,
  ])
}

/** Deletes rows of exports that ended more than `days` ago and no longer have a file. @returns how many it deleted */
export async function deleteEnded(client: ClientBase, schemaId: string, days: number): Promise<number> {
  const { rowCount } = await client.query(
    `delete from exports
     where schema_id = $1 and file_key is null and finished_at < now() - make_interval(days => $2)`,
    [schemaId, days],
  )
  return rowCount ?? 0
}

/**
 * Finds exports that were triggered more than `days` ago, have not ended, and whose lease was last renewed over a day
 * ago.
 */
export async function forgottenExports(client: ClientBase, schemaId: string, days: number) {
  const { rows } = await client.query<{ exportId: string; requestId: string }>(
    `select id as "exportId", request_id as "requestId" from exports
     where schema_id = $1 and finished_at is null and created_at < now() - make_interval(days => $2)
       and coalesce(renewed_at, created_at) < now() - interval '1 day'`,
    [schemaId, days],
  )
  return rows
}

/** Reads the state of an export and the key of its file. */
export async function fileOf(client: ClientBase, { schemaId, exportId }: ExportKey) {
  const { rows } = await client.query<{ state: JobState; fileKey: string | null }>(
    'select state, file_key as "fileKey" from exports where schema_id = $1 and id = $2',
    [schemaId, exportId],
  )
  return rows[0]
}
