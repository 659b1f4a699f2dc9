import type { ClientBase } from 'pg'
import { z } from 'zod'
import { end } from '../jobs/end.ts'
import { reasonOf } from '../jobs/job.ts'
import { type ExportRecord, findRecord } from '../jobs/jobs.sql.ts'
import { act, Refused } from './act.ts'
import { exportId, line } from './fields.ts'

/** @throws {Refused} */
export async function exportOf(client: ClientBase, id: string): Promise<ExportRecord> {
  const record = await findRecord(client, id)
  if (record) return record
  throw new Refused(404, `There is no export ${id}`, { hint: ': see export list' })
}

/** Its process notices at the next renewal, within a second; the queue entry then ends without effect. */
export const cancelExport = act({
  name: 'export cancel',
  /** The status of the export shows the reason. */
  fields: z.object({ id: exportId, reason: line.optional() }),
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
