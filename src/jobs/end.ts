/** Ends a full export and publishes the event for partners, both in the caller's transaction of the tenant. */
import type { ClientBase } from 'pg'
import { recordStaffAct } from '../audit/staff-act.sql.ts'
import type { NewEvent } from '../events/events.sql.ts'
import { publish } from '../events/publish.ts'
import { reasonOf } from './job.ts'
import {
  type Claim,
  type ExportKey,
  type ExportRecord,
  endExport,
  failExport,
  findRecord,
  finishExport,
  type StoredFile,
} from './jobs.sql.ts'

/** @returns false if the process has lost the export */
export async function finish(client: ClientBase, claim: Claim, file: StoredFile): Promise<boolean> {
  return publishEnd(client, claim, await finishExport(client, claim, file), { status: 'completed' })
}

/** @returns false if the process has lost the export */
export async function fail(client: ClientBase, claim: Claim, reason: string): Promise<boolean> {
  return publishEnd(client, claim, await failExport(client, claim, reason), { status: 'rejected', reason })
}

/** Needs no claim. @returns false if the export has ended already or does not exist */
export async function end(client: ClientBase, key: ExportKey, reason: string): Promise<boolean> {
  return publishEnd(client, key, await endExport(client, key, reason), { status: 'rejected', reason })
}

/** What staff wanted to cancel, as it was, and whether that ended it. */
export interface Cancelled {
  found: ExportRecord
  isEnded: boolean
}

export interface Cancelling {
  /** As the audit names it. */
  staff: string
  /** Shown in the status of the export, and in the audit. */
  reason: string | undefined
}

/**
 * Ends an export for staff, as the owner, and records that in the audit. Its process notices at the next renewal, within
 * a second; the queue entry then ends without effect. The last statements of the transaction.
 * @returns undefined if there is no such export
 */
export async function cancel(
  client: ClientBase,
  exportId: string,
  { staff, reason }: Cancelling,
): Promise<Cancelled | undefined> {
  const found = await findRecord(client, exportId)
  if (!found) return undefined
  const { schemaId, folderId, requestId } = found
  const isEnded = await end(client, { schemaId, exportId }, reasonOf('cancelled', requestId, reason))
  const details = { exportId, reason: reason ?? null }
  if (isEnded) await recordStaffAct(client, { staff, act: 'export cancel', schemaId, folderId, details })
  return { found, isEnded }
}

/** An export ends once, so its event is always the first about this document: CREATE. */
async function publishEnd(
  client: ClientBase,
  { schemaId, exportId }: ExportKey,
  folderId: string | undefined,
  outcome: { status: 'completed' | 'rejected'; reason?: string },
): Promise<boolean> {
  if (folderId === undefined) return false
  const event: NewEvent = {
    name: 'cloudDocument',
    operation: 'CREATE',
    folderId,
    data: { id: exportId, ...outcome },
  }
  await publish(client, schemaId, [event])
  return true
}
