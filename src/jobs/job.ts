/**
 * A full export from trigger to end: its states, the identity of its trigger, and the reason that its caller gets if it
 * fails. Pure. The statements in jobs.sql.ts change the state.
 */
import { createHash } from 'node:crypto'
import type { Compression, FileFormat, FormatOptions } from '../formats/file-formats.ts'

/** In order: waiting for a claim, claimed, ended with a file, ended without one. Drawn in src/README.md. */
export const jobStates = ['queued', 'running', 'done', 'failed'] as const
export type JobState = (typeof jobStates)[number]

/** States in which a job can be ended or claimed, whether it waits in the queue or its process died. */
export const openStates: readonly JobState[] = ['queued', 'running']

/** The status that callers see (docs/spec/exports.md#states-and-attempts). */
export function statusOf(state: JobState): 'INIT' | 'DONE' | 'FAILED' {
  if (state === 'done') return 'DONE'
  return state === 'failed' ? 'FAILED' : 'INIT'
}

/** The parameters of a trigger. Ids have no leading zeros; days are `YYYY-MM-DD`, both inclusive. */
export interface ExportParameters extends FormatOptions {
  schemaId: string
  folderId: string
  version: string
  format: FileFormat
  exerciceId: string | undefined
  period: { start: string; end: string } | undefined
  /** In the order of `setOfIds`. If empty, all journals are selected. */
  journalIds: string[]
  compression: Compression | undefined
  /** Whether the file contains the personal data of employees. */
  withEmployees: boolean
}

/** Returns 64 hexadecimal digits, which are equal for two triggers of the same export. */
export function identityOf(parameters: ExportParameters): string {
  const { schemaId, folderId, version, format, exerciceId = null, period, journalIds } = parameters
  const { compression = null, encoding = null, columns = null, withEmployees } = parameters
  const named = [
    schemaId,
    folderId,
    version,
    format,
    exerciceId,
    period === undefined ? null : [period.start, period.end],
    journalIds,
    // The next two items are left out when they have no content. So earlier versions, which may still run beside this
    // one, compute the same identity for the same export.
    ...((compression ?? encoding ?? columns) ? [[compression, encoding, columns]] : []),
    ...(withEmployees ? [] : ['without employees']),
  ]
  return createHash('sha256').update(JSON.stringify(named)).digest('hex')
}

/** Returns the ids in ascending order as numbers, without duplicates. */
export function setOfIds(ids: string[]): string[] {
  const numbers = [...new Set(ids.map(BigInt))]
  return numbers.sort((a, b) => (a < b ? -1 : 1)).map(String)
}

/**
 * Why an export failed: the database or the store was unreachable for too long; the store refused; the folder was
 * deleted, or does not fit the format; the program that writes Parquet failed; there is a bug; the process of every
 * attempt died; staff cancelled the export; no process claimed it or kept working on it (`forgotten`).
 */
export type FailureCause = keyof typeof causes

/** For each cause, what happened and whether a new export can succeed. */
const causes = {
  database: 'The ledger could not be read completely, despite retries. A new export may succeed.',
  store: 'The file could not be stored, despite retries. A new export may succeed.',
  refused:
    'The file store refused the file. A new export will fail too until the operators of the service free space or ' +
    'restore access.',
  folder: 'The folder no longer exists. A new export of it will fail too.',
  unsupported: 'The folder does not fit the format; a new export will fail too until it is corrected.',
  parquet:
    'The program that writes Parquet files failed. A new export may succeed; format=CSV has the same rows.',
  internal:
    'The service failed to create the file. A new export is likely to fail too until the operators fix the fault.',
  died: 'The service was interrupted during each attempt. A new export may succeed.',
  cancelled: 'The operators of the service cancelled the export. Ask them before you start a new export.',
  forgotten: 'The service did not finish this export in time. A new export may succeed.',
}

/**
 * Returns a sentence for the caller, without internals.
 * @param requestId the id of the trigger's request
 * @param note the explanation by the staff who cancelled the export; or what does not fit the format
 */
export function reasonOf(cause: FailureCause, requestId: string, note?: string): string {
  const noteText = note === undefined ? '' : cause === 'cancelled' ? ` They say: ${note}.` : ` ${note}.`
  return `${causes[cause]}${noteText} Quote request ${requestId} to the operators if you need their help.`
}

/** The reason of a failed export, with the time from which a new one can start (ISO 8601). */
export function reasonWithExpiry(reason: string, answersUntil: string): string {
  return `${reason} The same parameters return this failure until ${answersUntil}, and start a new export after that.`
}
