/** `GET /api/v1/mad/all` starts the export of a folder to a file; `GET /api/v1/mad/all/status` returns its progress. */
import { randomBytes } from 'node:crypto'
import { z } from '@hono/zod-openapi'
import type { Issue } from '../../../packages/contract/src/error-codes.ts'
import type { AnswerFacts } from '../../audit/audit-trail.ts'
import { opensEmployees } from '../../auth/principal.ts'
import { limits } from '../../config.ts'
import { inTenant } from '../../db/pool.ts'
import { AppError } from '../../errors.ts'
import { offeredFormats } from '../../exports/offered-formats.ts'
import { fecFileStem } from '../../formats/fec/columns.ts'
import {
  compressionNames,
  type FileFormat,
  type FileFormatFacts,
  type FormatParameter,
  fileFormatNames,
  fileFormats,
  formatOptions,
  formatParameters,
} from '../../formats/file-formats.ts'
import { named } from '../../formats/items/values.ts'
import { decimal } from '../../formats/minor-units.ts'
import { endingOfKey } from '../../jobs/file-key.ts'
import { identityOf, reasonWithExpiry, setOfIds, statusOf } from '../../jobs/job.ts'
import {
  type ExportView,
  insertExport,
  readExport,
  readLatest,
  retireAfterAnHour,
} from '../../jobs/jobs.sql.ts'
import {
  accountingFolderId,
  checkedTogether,
  date,
  type GivenQuery,
  id,
  ids,
  listed,
  oneOf,
  optional,
  text,
  version,
} from '../query.ts'
import { type FolderCall, folderRoute, inJson } from '../route.ts'
import { findSelected, periodIssues } from './movements-query.ts'

/** Longer periods are refused: no fiscal year is longer. */
const periodMonthsMax = 24

const format = oneOf(offeredFormats).openapi({ example: 'JSON' })

const factsOf = (name: FileFormat): FileFormatFacts => fileFormats[name]

/** Names the formats that take a parameter, for its description and its refusal. */
const takenBy = (parameter: FormatParameter) =>
  `only with ${listed(offeredFormats.filter((name) => factsOf(name).takes.includes(parameter)))}`

const described = (parameter: FormatParameter, what: string) => {
  const names = offeredFormats.filter((name) => factsOf(name).requires.includes(parameter))
  const required = names.length === 0 ? '' : `; required with ${listed(names)}`
  return { description: `${what}; ${takenBy(parameter)}${required}` }
}

const option = <Option extends keyof typeof formatOptions>(parameter: Option, what: string) =>
  optional(oneOf<(typeof formatOptions)[Option]>(formatOptions[parameter])).openapi(
    described(parameter, what),
  )

const fullExportQuery = checkedTogether(
  z.strictObject({
    version,
    accountingFolderId,
    format,
    compression: optional(oneOf(compressionNames)).openapi({
      description: 'The file is compressed',
      example: 'zstd',
    }),
    idExercice: optional(id).openapi(described('idExercice', 'The fiscal year, instead of a period')),
    startDate: optional(date).openapi(described('startDate', 'With endDate')),
    endDate: optional(date).openapi(
      described('endDate', `Inclusive; less than ${periodMonthsMax} months after startDate`),
    ),
    journalIds: ids(described('journalIds', 'Journals to restrict to')),
    encoding: option('encoding', 'UTF-8 instead of ISO 8859-15'),
    columns: option('columns', 'The further columns of the imported file too'),
  }),
  formatIssues,
)

function formatIssues(given: GivenQuery): Issue[] {
  const parsed = format.safeParse(given['format'])
  if (!parsed.success) return notOffered(given['format'])
  const { takes, requires } = factsOf(parsed.data)
  const refused = formatParameters
    .filter((parameter) => given[parameter] !== undefined && !takes.includes(parameter))
    .map((parameter) => ({ parameter, message: `is allowed ${takenBy(parameter)}` }))
  const missing = requires
    .filter((parameter) => given[parameter] === undefined)
    .map((parameter) => ({ parameter, message: `is required with format ${parsed.data}` }))
  if (refused.length > 0 || missing.length > 0) return [...refused, ...missing]
  return periodIssues(given, ['startDate', 'endDate'], periodMonthsMax, 'optional')
}

function notOffered(given: unknown): Issue[] {
  const name = fileFormatNames.find((each) => each === String(given).toUpperCase())
  const message = `${name} is not offered: this service runs without the package that writes it`
  return name === undefined ? [] : [{ parameter: 'format', message }]
}

const statusQuery = z.strictObject({
  version: optional(version),
  accountingFolderId,
  exportId: text()
    .min(1, 'is required')
    .openapi({ example: `export_${'0'.repeat(32)}` }),
})

const ExportJob = named('ExportJob', {
  id: z.string().openapi({ example: `export_${'0'.repeat(32)}` }),
  status: z.enum(['INIT', 'DONE', 'FAILED']).openapi('ExportStatus'),
  progress: z
    .object({
      rows: z.number().openapi({ description: 'Movements so far' }),
      rowsTotal: z.number().nullable().openapi({ description: 'null until they are counted' }),
      bytes: z.number().openapi({ description: 'Content so far, before compression' }),
    })
    .openapi('ExportProgress')
    .optional()
    .openapi({ description: 'While INIT' }),
  url: z
    .url()
    .optional()
    .openapi({
      description:
        'While DONE: the address of the file, new in each answer and valid for an hour. It supports GET, with Range. ' +
        'If files are in S3, the signature covers GET only: to read the headers alone, send Range: bytes=0-0. size ' +
        'and fileSha256 are given here',
    }),
  size: z.number().optional().openapi({ description: 'Bytes of the file, as downloaded' }),
  fileSha256: z.string().optional().openapi({ description: 'Of the file, as downloaded; hexadecimal' }),
  contentSize: z.number().optional().openapi({
    description:
      'Bytes of the content: the file after decompression, or the file itself if it is not compressed',
  }),
  rows: z.number().optional().openapi({ description: 'Movements' }),
  sha256: z.string().optional().openapi({ description: 'Of the content, hexadecimal' }),
  totals: named('ExportTotals', { debit: z.number(), credit: z.number() }).optional(),
  notes: z
    .record(z.string(), z.number())
    .optional()
    .openapi({
      description:
        'While DONE, if the format has notes: how much it left out or altered, by kind. FEC: drafts, ' +
        'outsideBooks, blankValidDates, blankFields, replacedCharacters, columnsLeftOut, earlierImports',
    }),
  reason: z.string().optional().openapi({
    description: 'While FAILED: what happened, and when the same parameters will start a new export',
  }),
})

const answers = { 200: inJson('The export job', ExportJob) }

export const fullExport = folderRoute({
  operationId: 'startExport',
  path: '/api/v1/mad/all',
  groups: ['exports'],
  summary: 'Starts an export of the folder to a file',
  description:
    'For an hour the same parameters return the same job, whatever its state. ' +
    'HEAD is refused with 405, because it must not start an export.',
  query: fullExportQuery,
  answers,
  starts: true,
  answer: startExport,
})

export const fullExportStatus = folderRoute({
  operationId: 'getExport',
  path: '/api/v1/mad/all/status',
  groups: ['exports'],
  summary: 'The progress of an export, and the address of its file',
  query: statusQuery,
  answers,
  answer: async (call) => {
    const { services, principal, folderId, query } = call
    const { exportId } = query
    // A malformed id names no export, so the database is not queried.
    if (!/^export_[0-9a-f]{32}$/.test(exportId)) throw new AppError('ERR-EXPORT-NOT-FOUND')
    const key = { schemaId: principal.schemaId, folderId, exportId }
    const job = await inTenant(services.database, key.schemaId, (client) =>
      readExport(client, key, services.config.fileRetentionDays, opensEmployees(principal)),
    )
    if (!job) throw new AppError('ERR-EXPORT-NOT-FOUND')
    if (job.expired) throw new AppError('ERR-EXPORT-EXPIRED')
    return answerJob(call, job)
  },
})

async function startExport(call: FolderCall<z.output<typeof fullExportQuery>>): Promise<Response> {
  const { services, principal, folderId, query, requestId } = call
  const { schemaId } = principal
  const { version, format, compression, encoding, columns, startDate: start, endDate: end } = query
  const folder = { schemaId, folderId }
  const selection = {
    exerciceId: query.idExercice,
    period: start !== undefined && end !== undefined ? { start, end } : undefined,
    journalIds: setOfIds(query.journalIds ?? []),
  }
  const withEmployees = opensEmployees(principal)
  const options = { version, format, compression, encoding, columns, withEmployees }
  const parameters = { ...folder, ...options, ...selection }
  const identity = identityOf(parameters)
  const selected =
    selection.exerciceId !== undefined || selection.journalIds.length > 0
      ? await findSelected(services.database, { ...folder, ...selection, timeZone: services.config.timeZone })
      : undefined
  const exerciceEnd = selected?.period?.end
  const job = await inTenant(services.database, schemaId, async (client) => {
    const exportId = `export_${randomBytes(16).toString('hex')}`
    const { trace } = call.c.get('telemetry')
    await retireAfterAnHour(client, { ...folder, identity })
    if (await insertExport(client, { ...parameters, exerciceEnd, exportId, identity, requestId }))
      await services.queue.add(client, { schemaId, exportId, requestId, trace })
    return readLatest(client, { ...folder, identity })
  })
  return answerJob(call, job)
}

async function answerJob({ c, services }: FolderCall<unknown>, job: ExportView): Promise<Response> {
  noteJob(c.get('audited'), job)
  const body = { id: job.id, status: statusOf(job.state), ...(await detailsOf(job, services.store)) }
  // The totals are written from their digits; JSON numbers from JavaScript would lose precision.
  return c.body(JSON.stringify(body), 200, {
    'Content-Type': 'application/json',
    'Cache-Control': 'private, no-store',
  })
}

/**
 * Notes a job for the audit. The digests of a file are noted when its address is given, because S3 does not report who
 * downloads it.
 */
function noteJob(facts: AnswerFacts | undefined, job: ExportView): void {
  if (!facts) return
  const { id: exportId, fileSha256 } = job
  const isDone = statusOf(job.state) === 'DONE'
  facts.selection = { ...facts.selection, exportId, ...(isDone ? { fileSha256 } : {}) }
  if (isDone) Object.assign(facts, { rows: Number(job.rows), sha256: job.sha256 ?? undefined })
}

async function detailsOf(job: ExportView, store: FolderCall<unknown>['services']['store']): Promise<object> {
  switch (statusOf(job.state)) {
    case 'INIT': {
      const rowsTotal = job.rowsTotal === null ? null : Number(job.rowsTotal)
      return { progress: { rows: Number(job.rows), rowsTotal, bytes: Number(job.bytes) } }
    }
    case 'DONE': {
      return {
        url: await store.signedUrl(job.fileKey!, fileNameOf(job), limits.fileLinkSeconds),
        size: Number(job.fileBytes),
        fileSha256: job.fileSha256,
        contentSize: Number(job.bytes),
        rows: Number(job.rows),
        sha256: job.sha256,
        totals: { debit: decimal(job.debit!, 2), credit: decimal(job.credit!, 2) },
        ...(job.notes ? { notes: job.notes } : {}),
      }
    }
    case 'FAILED':
      return { reason: reasonWithExpiry(job.reason!, job.answersUntil) }
  }
}

/** The name under which clients save the file of a finished export. */
function fileNameOf(job: ExportView): string {
  const { reference, siret, folderId, format, exerciceEnd, snapshotOn, fileKey } = job
  const stem =
    format === 'FEC'
      ? fecFileStem({ siret, reference, exerciceEnd: exerciceEnd! })
      : `${reference || folderId}_${format}_${snapshotOn}`
  return `${stem}.${endingOfKey(fileKey!)}`
}
