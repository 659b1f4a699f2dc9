/** `GET /api/v1/mad/all` starts the export of a folder to a file, `GET /api/v1/mad/all/status` tells how far it is. */
import { randomBytes } from 'node:crypto'
import { z } from '@hono/zod-openapi'
import { limits } from '../../config.ts'
import { inTenant } from '../../db/pool.ts'
import { AppError } from '../../errors.ts'
import { fileFormats } from '../../formats/file-formats.ts'
import { decimal } from '../../formats/minor-units.ts'
import { identityOf, reasonWithExpiry, setOfIds, statusOf } from '../../jobs/job.ts'
import type { ExportView } from '../../jobs/jobs.sql.ts'
import { insertExport, readExport, readLatest, retireAfterAnHour } from '../../jobs/jobs.sql.ts'
import { type FolderCall, folderRoute } from '../route.ts'
import { type FullExportQuery, fullExportQuery, statusQuery } from './full-export-query.ts'
import { findSelected } from './selected.ts'

const ExportJob = z
  .object({
    id: z.string().openapi({ example: `export_${'0'.repeat(32)}` }),
    status: z.enum(['INIT', 'DONE', 'FAILED']),
    progress: z
      .object({
        rows: z.number().openapi({ description: 'Movements so far' }),
        rowsTotal: z.number().nullable().openapi({ description: 'null until they are counted' }),
        bytes: z.number(),
      })
      .optional()
      .openapi({ description: 'While INIT' }),
    url: z
      .url()
      .optional()
      .openapi({
        description:
          'While DONE: the file; good for an hour, new each time. For GET, with Range. Where files are in S3 it is ' +
          'signed for GET alone: its headers without its content are had with Range: bytes=0-0, and size and sha256 ' +
          'are given here',
      }),
    size: z.number().optional().openapi({ description: 'Bytes' }),
    rows: z.number().optional().openapi({ description: 'Movements' }),
    sha256: z.string().optional().openapi({ description: 'Of the file, hexadecimal' }),
    totals: z.object({ debit: z.number(), credit: z.number() }).optional(),
    reason: z.string().optional().openapi({
      description: 'While FAILED: what happened, and from when on the same parameters start a new export',
    }),
  })
  .openapi('ExportJob')

const answers = {
  200: { description: 'The export job', content: { 'application/json': { schema: ExportJob } } },
}

export const fullExport = folderRoute({
  method: 'get',
  path: '/api/v1/mad/all',
  levels: ['api', 'firm'],
  summary: 'Starts an export of the folder to a file',
  description:
    'For an hour the same parameters answer with the same job, however it stands or ended. ' +
    'HEAD is refused with 405, as who only looks starts nothing.',
  query: fullExportQuery,
  answers,
  starts: true,
  answer: startExport,
})

export const fullExportStatus = folderRoute({
  method: 'get',
  path: '/api/v1/mad/all/status',
  levels: ['api', 'firm'],
  summary: 'How far the export of a folder is, and where its file is to be had',
  query: statusQuery,
  answers,
  answer: async (call) => {
    const { services, principal, folderId, query } = call
    const { exportId } = query
    // What cannot be an id is nobody's export, and is not looked for.
    if (!/^export_[0-9a-f]{32}$/.test(exportId)) throw new AppError('ERR-EXPORT-NOT-FOUND')
    const key = { schemaId: principal.schemaId, folderId, exportId }
    const job = await inTenant(services.database, key.schemaId, (client) =>
      readExport(client, key, services.config.fileRetentionDays),
    )
    if (!job) throw new AppError('ERR-EXPORT-NOT-FOUND')
    if (job.expired) throw new AppError('ERR-EXPORT-EXPIRED')
    return answerJob(call, job)
  },
})

async function startExport(call: FolderCall<FullExportQuery>): Promise<Response> {
  const { services, principal, folderId, query, requestId } = call
  const { schemaId } = principal
  const { version, format, idExercice: exerciceId, startDate: start, endDate: end } = query
  const period = start !== undefined && end !== undefined ? { start, end } : undefined
  const journalIds = setOfIds(query.journalIds ?? [])
  const wanted = { schemaId, folderId, version, format, exerciceId, period, journalIds }
  const identity = identityOf(wanted)
  if (exerciceId !== undefined || journalIds.length > 0) await findSelected(services.database, wanted)
  const job = await inTenant(services.database, schemaId, async (client) => {
    const exportId = `export_${randomBytes(16).toString('hex')}`
    await retireAfterAnHour(client, { schemaId, folderId, identity })
    if (await insertExport(client, { ...wanted, exportId, identity, requestId }))
      await services.queue.add(client, { schemaId, exportId, requestId })
    return readLatest(client, { schemaId, folderId, identity })
  })
  return answerJob(call, job)
}

async function answerJob({ c, services }: FolderCall<unknown>, job: ExportView): Promise<Response> {
  const body = { id: job.id, status: statusOf(job.state), ...(await detailsOf(job, services.store)) }
  // The amounts are printed from their digits, which JSON.stringify of a number would not keep.
  return c.body(JSON.stringify(body), 200, {
    'Content-Type': 'application/json',
    'Cache-Control': 'private, no-store',
  })
}

async function detailsOf(job: ExportView, store: FolderCall<unknown>['services']['store']): Promise<object> {
  switch (statusOf(job.state)) {
    case 'INIT': {
      const rowsTotal = job.rowsTotal === null ? null : Number(job.rowsTotal)
      return { progress: { rows: Number(job.rows), rowsTotal, bytes: Number(job.bytes) } }
    }
    case 'DONE': {
      const fileName = `${job.reference || job.folderId}_${job.format}_${job.snapshotOn}.${fileFormats[job.format].ending}`
      return {
        url: await store.signedUrl(job.fileKey!, fileName, limits.fileLinkSeconds),
        size: Number(job.bytes),
        rows: Number(job.rows),
        sha256: job.sha256,
        totals: { debit: decimal(job.debit!, 2), credit: decimal(job.credit!, 2) },
      }
    }
    case 'FAILED':
      return { reason: reasonWithExpiry(job.reason!, job.answersUntil) }
  }
}
