/** Full exports of all tenants, as the owner. */
import type { Pool } from 'pg'
import type { FileFormat } from '../../formats/file-formats.ts'
import type { JobState } from '../../jobs/job.ts'

export interface OpenExport {
  id: string
  schemaId: string
  folderId: string
  folder: string | null
  format: FileFormat
  compression: string | null
  state: 'queued' | 'running'
  attempt: number
  /** Digits. */
  rows: string
  rowsTotal: string | null
  bytes: string
  createdAt: Date
  renewedAt: Date | null
}

export interface EndedExport extends Omit<OpenExport, 'state'> {
  state: 'done' | 'failed'
  reason: string | null
  finishedAt: Date
}

const columns = `e.id, e.schema_id as "schemaId", e.folder_id as "folderId", f.reference as folder, e.format,
  e.compression, e.state, e.attempt, e.rows, e.rows_total as "rowsTotal", e.bytes, e.created_at as "createdAt",
  e.renewed_at as "renewedAt"`

/** Oldest first. */
export async function listOpenExports(owner: Pool, most: number): Promise<OpenExport[]> {
  const { rows } = await owner.query<OpenExport>(
    `select ${columns} from exports e join folders f on f.schema_id = e.schema_id and f.id = e.folder_id
     where e.state in ('queued', 'running') order by e.created_at limit $1`,
    [most],
  )
  return rows
}

/** Newest end first. */
export async function listEndedExports(owner: Pool, most: number): Promise<EndedExport[]> {
  const { rows } = await owner.query<EndedExport>(
    `select ${columns}, e.reason, e.finished_at as "finishedAt"
     from exports e join folders f on f.schema_id = e.schema_id and f.id = e.folder_id
     where e.finished_at is not null order by e.finished_at desc limit $1`,
    [most],
  )
  return rows
}

/** Undefined if there is none. */
export async function findExport(
  owner: Pool,
  id: string,
): Promise<(Omit<OpenExport, 'state'> & { state: JobState }) | undefined> {
  const { rows } = await owner.query(
    `select ${columns} from exports e join folders f on f.schema_id = e.schema_id and f.id = e.folder_id
     where e.id = $1`,
    [id],
  )
  return rows[0]
}
