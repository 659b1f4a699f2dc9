import type { ClientBase, Pool } from 'pg'
import { z } from 'zod'
import { end } from '../jobs/end.ts'
import { reasonOf } from '../jobs/job.ts'
import { type ExportRecord, findRecord } from '../jobs/jobs.sql.ts'
import { act, existing, Refused } from './act.ts'
import { exportId, line } from './fields.ts'

/** @throws {Refused} if there is no such export */
export async function exportOf(client: ClientBase | Pool, id: string): Promise<ExportRecord> {
  return existing(await findRecord(client, id), `export ${id}`, 'export list')
}

/**
 * Cancels a full export. The process that runs it notices at its next renewal, within a second. If it is still queued,
 * its queue entry ends without effect.
 */
export const cancelExport = act({
  name: 'export cancel',
  fields: z.object({
    id: exportId.meta({ help: 'as export list shows it' }),
    reason: line.optional().meta({ help: 'shown in its status' }),
  }),
  run: async (client, { id, reason }) => {
    const { schemaId, folderId, requestId, state } = await exportOf(client, id)
    if (!(await end(client, { schemaId, exportId: id }, reasonOf('cancelled', requestId, reason))))
      throw new Refused(409, `The export ${id} is already ${state} and cannot be cancelled`)
    return {
      schemaId,
      folderId,
      details: { exportId: id, reason: reason ?? null },
      says: `The export ${id} is cancelled.`,
    }
  },
})
