/**
 * All statements on the table of full exports except those of retention. Each runs inside a transaction of the tenant.
 *
 * Fencing: a slow process may still write after another one has claimed its export. So each claim increments `attempt`,
 * and every later statement of a claim requires `state = 'running' and attempt = $n`. A process whose statement matches
 * no row stops and removes what it stored. Cancelling works the same way, because it ends the row.
 *
 * A claim also names the epoch in which it was made. A promoted server may lack the last claim and give the same
 * attempt number to another process. Also, what a process read before may belong to a state that was lost. So a claim
 * of a former epoch can only be released.
 */
import { strict as assert } from 'node:assert'
import type { ClientBase, Pool } from 'pg'
import { utc } from '../db/literal.ts'
import type { FileNotes } from '../exports/render/render-rows.ts'
import type { Compression, FileFormat, FormatOptions } from '../formats/file-formats.ts'
import { type ExportParameters, type JobState, openStates } from './job.ts'

export interface ExportKey {
  schemaId: string
  /** `export_` and 32 hexadecimal digits. */
  exportId: string
}

export interface AttemptKey extends ExportKey {
  attempt: number
}

/** A process's claim on an export. A later claim, which has a higher attempt, voids this one; so does a new epoch. */
export interface Claim extends AttemptKey {
  epoch: number
}

interface NewExport extends ExportKey, ExportParameters {
  /** Last day of the exercice, `YYYY-MM-DD`. */
  exerciceEnd: string | undefined
  identity: string
  requestId: string
}

type Identity = Pick<NewExport, 'schemaId' | 'folderId' | 'identity'>

/**
 * Retires the export that answers this trigger if it was triggered an hour ago or more, so that a new one can start.
 */
export async function retireAfterAnHour(
  client: ClientBase,
  { schemaId, folderId, identity }: Identity,
): Promise<void> {
  await client.query({
    name: 'retire-export',
    text: `update exports set latest = false
     where schema_id = $1 and folder_id = $2 and identity = $3 and latest
       and created_at <= clock_timestamp() - interval '1 hour'`,
    values: [schemaId, folderId, identity],
  })
}

/** Returns false if an export with this identity exists. Waits for a concurrent insert of the same one. */
export async function insertExport(client: ClientBase, job: NewExport): Promise<boolean> {
  const { rowCount } = await client.query({
    name: 'insert-export',
    text: `insert into exports (schema_id, id, folder_id, version, format, exercice_id, period_start, period_end,
       journal_ids, compression, encoding, columns, exercice_end, identity, request_id,
       attempt_without_employees)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
     on conflict (schema_id, folder_id, identity) where latest do nothing`,
    values: [
      job.schemaId,
      job.exportId,
      job.folderId,
      job.version,
      job.format,
      job.exerciceId,
      job.period?.start,
      job.period?.end,
      job.journalIds,
      job.compression,
      job.encoding,
      job.columns,
      job.exerciceEnd,
      job.identity,
      job.requestId,
      job.withEmployees ? null : 0,
    ],
  })
  return rowCount === 1
}

/** The parts of an export that callers may see. */
export interface ExportView {
  id: string
  folderId: string
  /** The folder's current reference, and its SIRET or SIREN. */
  reference: string | null
  siret: string | null
  format: FileFormat
  compression: Compression | null
  /** Last day of the exercice, if one was selected, `YYYY-MM-DD`. */
  exerciceEnd: string | null
  state: JobState
  /** Movements so far, as decimal digits. */
  rows: string
  /** Null until an attempt has counted them. */
  rowsTotal: string | null
  /** Size of the content: the file before compression. */
  bytes: string
  sha256: string | null
  fileKey: string | null
  /** Size of the file as stored. Null until it is stored. */
  fileBytes: string | null
  fileSha256: string | null
  /** In minor units, as decimal digits. */
  debit: string | null
  credit: string | null
  /** Day of the snapshot, `YYYY-MM-DD`. */
  snapshotOn: string | null
  /** How much the format left out or altered; null if it counts nothing. */
  notes: FileNotes | null
  reason: string | null
  /** ISO 8601, UTC: the end of the hour in which the same trigger returns this export. */
  answersUntil: string
}

// Adds one second to the hour, because the time format drops fractions. Exports from versions without compression have
// no size and hash of the file. The view shows those of the content, which are the same.
const viewColumns = `e.id, e.folder_id as "folderId", f.reference, f.siret, e.format, e.compression,
  e.exercice_end::text as "exerciceEnd", e.state, e.rows,
  e.rows_total as "rowsTotal", e.bytes, e.sha256, e.file_key as "fileKey",
  case when e.state = 'done' then coalesce(e.file_bytes, e.bytes) end as "fileBytes",
  coalesce(e.file_sha256, e.sha256) as "fileSha256", e.debit, e.credit, e.snapshot_on::text as "snapshotOn",
  e.notes, e.reason,
  ${utc("(e.created_at + interval '1 hour 1 second')")} as "answersUntil"`

/** Reads the export that answers a trigger. There always is one after `insertExport`. */
export async function readLatest(client: ClientBase, { schemaId, folderId, identity }: Identity) {
  const { rows } = await client.query<ExportView>({
    name: 'latest-export',
    text: `select ${viewColumns}
     from exports e join folders f on f.schema_id = e.schema_id and f.id = e.folder_id
     where e.schema_id = $1 and e.folder_id = $2 and e.identity = $3 and e.latest`,
    values: [schemaId, folderId, identity],
  })
  assert(rows[0], 'an export answers each trigger')
  return rows[0]
}

/**
 * @param withEmployees whether the reader may also read an export with the personal data of employees
 * @returns `expired`: whether its retention period is over, so that the file was removed or is about to be. Undefined
 *   if the folder has no such export for this reader
 */
export async function readExport(
  client: ClientBase,
  { schemaId, exportId, folderId }: ExportKey & { folderId: string },
  retentionDays: number,
  withEmployees: boolean,
) {
  const { rows } = await client.query<ExportView & { expired: boolean }>(
    `select ${viewColumns}, coalesce(e.finished_at <= now() - make_interval(days => $4), false) as expired
     from exports e join folders f on f.schema_id = e.schema_id and f.id = e.folder_id
     where e.schema_id = $1 and e.folder_id = $2 and e.id = $3 and ($5 or e.attempt_without_employees is not null)`,
    [schemaId, folderId, exportId, retentionDays, withEmployees],
  )
  return rows[0]
}

/** What the claiming process needs to run the export. */
export interface ClaimedExport extends Claim {
  folderId: string
  version: string
  format: FileFormat
  exerciceId: string | null
  /** `YYYY-MM-DD`. The start and the end of the period are both set or both null. */
  periodStart: string | null
  periodEnd: string | null
  journalIds: string[]
  compression: Compression | null
  encoding: FormatOptions['encoding'] | null
  columns: FormatOptions['columns'] | null
  withEmployees: boolean
  /** Cursor of the folder's ledger at the claim: the file shows that state or a later one. Null if the folder is gone. */
  seen: string | null
}

/** Returns undefined if the export has ended or does not exist. */
export async function claimExport(client: ClientBase, { schemaId, exportId }: ExportKey) {
  const { rows } = await client.query<ClaimedExport>({
    name: 'claim-export',
    text: `update exports e set state = 'running', attempt = attempt + 1,
       attempt_without_employees = attempt_without_employees + 1, epoch = pass_gate(), renewed_at = clock_timestamp()
     where schema_id = $1 and id = $2 and state = any ($3)
     returning schema_id as "schemaId", id as "exportId", attempt, epoch, folder_id as "folderId", version, format, exercice_id as "exerciceId",
       period_start::text as "periodStart", period_end::text as "periodEnd", journal_ids::text[] as "journalIds",
       compression, encoding, columns, attempt_without_employees is null as "withEmployees",
       (select ledger_cursor(f.schema_id, f.id, f.ledger_version, 'file') from folders f
        where f.schema_id = e.schema_id and f.id = e.folder_id) as seen`,
    values: [schemaId, exportId, openStates],
  })
  return rows[0]
}

/** Condition that a claim still holds. Also passes the gate (`pass_gate`). */
const isClaimed = `schema_id = $1 and id = $2 and state = 'running' and attempt = $3 and epoch = $4 and pass_gate() = $4`

export interface Progress {
  rows: number
  /** Undefined until the movements are counted. */
  rowsTotal: number | undefined
  /** Bytes of the content, before compression. */
  bytes: number
}

/**
 * Renews the lease and records progress. A retry starts from zero, but the recorded progress never goes back.
 * @returns false if the process has lost the export
 */
export async function renewExport(client: ClientBase, claim: Claim, progress: Progress): Promise<boolean> {
  const { rowCount } = await client.query(
    `update exports set renewed_at = clock_timestamp(), rows = greatest(rows, $5), bytes = greatest(bytes, $6),
       rows_total = case when $7::bigint is null then rows_total else greatest(rows_total, $7, rows, $5) end
     where ${isClaimed}`,
    [...keyOf(claim), progress.rows, progress.bytes, progress.rowsTotal],
  )
  return rowCount === 1
}

/**
 * Returns the export to `queued`, even from a claim of a former epoch. Returns false if the process has lost the
 * export.
 */
export async function releaseExport(client: ClientBase, claim: Claim): Promise<boolean> {
  const { rowCount } = await client.query(
    `update exports set state = 'queued'
     where schema_id = $1 and id = $2 and state = 'running' and attempt = $3 and epoch = $4 and pass_gate() > 0`,
    keyOf(claim),
  )
  return rowCount === 1
}

/** A stored file. */
export interface StoredFile {
  fileKey: string
  rows: number
  /** Size of the content: the file before compression. */
  bytes: number
  sha256: string
  /** Size of the file as stored. */
  fileBytes: number
  fileSha256: string
  /** In minor units. */
  debit: bigint
  credit: bigint
  /** Day of the snapshot, `YYYY-MM-DD`. */
  snapshotOn: string
  notes: FileNotes | undefined
}

/**
 * Ends an export with a file.
 * @returns the folder; undefined if the process has lost the export. end.ts publishes the event
 */
export async function finishExport(client: ClientBase, claim: Claim, file: StoredFile) {
  const { rows } = await client.query<{ folderId: string }>({
    name: 'finish-export',
    text: `update exports set state = 'done', finished_at = clock_timestamp(), file_key = $5, rows = $6, rows_total = $6,
       bytes = $7, sha256 = $8, debit = $9, credit = $10, snapshot_on = $11, file_bytes = $12, file_sha256 = $13,
       notes = $14
     where ${isClaimed}
     returning folder_id as "folderId"`,
    values: [
      ...keyOf(claim),
      file.fileKey,
      file.rows,
      file.bytes,
      file.sha256,
      String(file.debit),
      String(file.credit),
      file.snapshotOn,
      file.fileBytes,
      file.fileSha256,
      file.notes,
    ],
  })
  return rows[0]?.folderId
}

/** Ends an export that failed. @returns as `finishExport` */
export async function failExport(client: ClientBase, claim: Claim, reason: string) {
  const { rows } = await client.query<{ folderId: string }>(
    `update exports set state = 'failed', finished_at = clock_timestamp(), reason = $5
     where ${isClaimed}
     returning folder_id as "folderId"`,
    [...keyOf(claim), reason],
  )
  return rows[0]?.folderId
}

/** Ends an export without a claim. @returns the folder; undefined if the export has ended already or does not exist */
export async function endExport(client: ClientBase, { schemaId, exportId }: ExportKey, reason: string) {
  const { rows } = await client.query<{ folderId: string }>(
    `update exports set state = 'failed', finished_at = clock_timestamp(), reason = $3
     where schema_id = $1 and id = $2 and state = any ($4)
     returning folder_id as "folderId"`,
    [schemaId, exportId, reason, openStates],
  )
  return rows[0]?.folderId
}

function keyOf({ schemaId, exportId, attempt, epoch }: Claim): (string | number)[] {
  return [schemaId, exportId, attempt, epoch]
}

/** An export as staff see it, of any tenant. */
export interface ExportRecord extends ExportView {
  schemaId: string
  requestId: string
  encoding: string | null
  columns: string | null
  attempt: number
  /** ISO 8601, UTC. */
  createdAt: string
  renewedAt: string | null
  finishedAt: string | null
  tookMs: number | null
}

const recordColumns = `${viewColumns}, e.schema_id as "schemaId", e.request_id as "requestId",
  e.encoding, e.columns, e.attempt, ${utc('e.created_at')} as "createdAt", ${utc('e.renewed_at')} as "renewedAt",
  ${utc('e.finished_at')} as "finishedAt",
  (extract(epoch from e.finished_at - e.created_at) * 1000)::float8 as "tookMs"`

/** Each order has an index, so that a list stops reading at its last row and need not sort all rows. */
const exportOrders = {
  newest: 'order by e.created_at desc, e.id',
  'oldest that is open': `and e.state in ('queued', 'running') order by e.created_at`,
  'ended last': 'and e.finished_at is not null order by e.finished_at desc',
}

interface ExportFilter {
  folderId?: string | undefined
  state?: JobState | undefined
  order?: keyof typeof exportOrders
  most: number
}

/** Runs as the owner. */
export async function listExports(
  client: ClientBase | Pool,
  { folderId, state, order = 'newest', most }: ExportFilter,
): Promise<ExportRecord[]> {
  const { rows } = await client.query<ExportRecord>(
    `select ${recordColumns}
     from exports e join folders f on f.schema_id = e.schema_id and f.id = e.folder_id
     where ($1::bigint is null or e.folder_id = $1) and ($2::text is null or e.state = $2)
     ${exportOrders[order]} limit $3`,
    [folderId, state, most],
  )
  return rows
}

/** Runs as the owner. */
export async function findRecord(client: ClientBase | Pool, exportId: string) {
  const { rows } = await client.query<ExportRecord>(
    `select ${recordColumns}
     from exports e join folders f on f.schema_id = e.schema_id and f.id = e.folder_id
     where e.id = $1`,
    [exportId],
  )
  return rows[0]
}
