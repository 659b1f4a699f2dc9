/** Ends a full export and publishes the event for partners. Both happen in the caller's transaction of the tenant. */
import type { ClientBase } from 'pg'
import { publish } from '../events/publish.ts'
import {
  type Claim,
  type ExportKey,
  endExport,
  failExport,
  finishExport,
  type StoredFile,
} from './jobs.sql.ts'

/** Ends an export whose file is stored. @returns false if the process has lost the export */
export async function finish(client: ClientBase, claim: Claim, file: StoredFile): Promise<boolean> {
  return publishEnd(client, claim, await finishExport(client, claim, file), { status: 'completed' })
}

/** Ends an export that failed. @returns false if the process has lost the export */
export async function fail(client: ClientBase, claim: Claim, reason: string): Promise<boolean> {
  return publishEnd(client, claim, await failExport(client, claim, reason), { status: 'rejected', reason })
}

/** Ends an export without a claim. @returns false if the export has ended already or does not exist */
export async function end(client: ClientBase, key: ExportKey, reason: string): Promise<boolean> {
  return publishEnd(client, key, await endExport(client, key, reason), { status: 'rejected', reason })
}

/** An export ends only once, so its event is always the first one about this document: CREATE. */
async function publishEnd(
  client: ClientBase,
  { schemaId, exportId }: ExportKey,
  folderId: string | undefined,
  outcome: { status: 'completed' | 'rejected'; reason?: string },
): Promise<boolean> {
  if (folderId === undefined) return false
  const data = { id: exportId, ...outcome }
  await publish(client, schemaId, [{ name: 'cloudDocument', operation: 'CREATE', folderId, data }])
  return true
}
