/**
 * The collections of a folder, each as a route of its own (contract, section 4), and the folders of a firm: streamed as
 * movements are, with the items of the full export.
 */
import { z } from '@hono/zod-openapi'
import { inTenant } from '../../db/pool.ts'
import { AppError } from '../../errors.ts'
import { dayIn } from '../../exports/read/day.ts'
import { readSelected } from '../../exports/read/movements.sql.ts'
import type { FolderCollection } from '../../exports/render/collections.ts'
import { collectionTag } from '../../exports/render/collections.ts'
import { startExport } from '../../exports/run/start.ts'
import { mediaTypes } from '../../formats/file-formats.ts'
import { accountingFolderId, version } from '../query.ts'
import { type FolderCall, folderRoute, type Route, tokenRoute } from '../route.ts'
import { conditionalRequest, etagHeaders, streamHeaders } from '../schemas/answer-headers.ts'
import * as item from '../schemas/collection-schemas.ts'
import { Entry } from '../schemas/movement-schema.ts'
import { representationFor, streamExport } from '../stream-export.ts'
import { type EntriesQuery, entriesQuery } from './movements-query.ts'
import { lookAtSelection } from './selected.ts'

const madQuery = z.strictObject({ version, accountingFolderId })

const proof =
  'One item a line with Accept: application/x-ndjson. The trailers X-Row-Count and X-Content-SHA256 (of the body before ' +
  'compression) prove that the transfer is whole'
const unchanged = {
  304: {
    headers: etagHeaders,
    description: 'The representation named by If-None-Match is still what there is',
  },
}

function answersOf(json: z.ZodType, line: z.ZodType) {
  const content = { [mediaTypes.json]: { schema: json }, [mediaTypes.ndjson]: { schema: line } }
  return { headers: { ...etagHeaders, ...streamHeaders }, description: proof, content }
}

function collectionRoute(collection: FolderCollection, summary: string, schema: z.ZodType): Route {
  const json = collection === 'accountingFolder' ? schema : z.array(schema)
  return folderRoute({
    method: 'get',
    path: `/api/v1/mad/${collection}`,
    levels: ['api', 'firm'],
    summary,
    query: madQuery,
    headers: conditionalRequest,
    answers: { 200: answersOf(json, schema), ...unchanged },
    answer: (call) => answerCollection(collection, call),
  })
}

async function answerCollection(collection: FolderCollection, call: FolderCall<unknown>): Promise<Response> {
  const { c, services, principal, folderId } = call
  const { schemaId, firmId } = principal
  const representation = representationFor(c)
  const folder = { schemaId, folderId, exerciceId: undefined }
  const selected = await inTenant(services.database, schemaId, (client) => readSelected(client, folder))
  if (!selected) throw new AppError('ERR-FOLDER-NOT-FOUND')
  const { timeZone } = services.config
  const owner = { schemaId, folderId, firmId, today: dayIn(timeZone, Date.now()), timeZone }
  return streamExport(c, services, {
    representation,
    fileName: `${selected.reference ?? folderId}_${collection}`,
    ledger: {
      version: selected.ledgerVersion,
      tagAt: (ledgerVersion) => collectionTag(collection, owner, ledgerVersion),
    },
    after: undefined,
    start: () =>
      startExport(services.threads, 'exportCollection', { schemaId, collection, owner, ...representation }),
  })
}

const entries = folderRoute({
  method: 'get',
  path: '/api/v1/mad/entries',
  levels: ['api', 'firm'],
  summary: 'Entries of a fiscal year or a period with their movements, streamed',
  query: entriesQuery,
  headers: conditionalRequest,
  answers: { 200: answersOf(z.array(Entry), Entry), ...unchanged },
  answer: answerEntries,
})

async function answerEntries(call: FolderCall<EntriesQuery>): Promise<Response> {
  const { c, query, services } = call
  const { selection, asked } = await lookAtSelection(call, 'entries')
  const task = { schemaId: selection.schemaId, selection, after: query.after, ...asked.representation }
  return streamExport(c, services, {
    ...asked,
    start: () => startExport(services.threads, 'exportEntries', task),
  })
}

/** Several folders, each with a ledger of its own: there is no version to make an ETag of. */
const society = tokenRoute({
  method: 'get',
  path: '/api/v1/society',
  levels: ['firm'],
  summary: 'The folders of the firm',
  query: z.strictObject({}),
  answers: { 200: answersOf(z.array(item.Society), item.Society) },
  answer: ({ c, services, principal }) => {
    const { schemaId, firmId } = principal
    const representation = representationFor(c)
    const owner = { schemaId, firmId, folderId: '0', today: '', timeZone: '' }
    const task = { schemaId, collection: 'society' as const, owner, ...representation }
    return streamExport(c, services, {
      representation,
      fileName: 'society',
      ledger: undefined,
      after: undefined,
      start: () => startExport(services.threads, 'exportCollection', task),
    })
  },
})

export const collectionRoutes: readonly Route[] = [
  collectionRoute('accountingFolder', 'The folder itself', item.AccountingFolder),
  collectionRoute('payments', 'Modes of payment', item.Payment),
  collectionRoute('banks', 'Bank accounts', item.Bank),
  collectionRoute('journals', 'Journals', item.Journal),
  collectionRoute('accounts', 'The chart of accounts, with companies and employees', item.Account),
  collectionRoute('exercices', 'Fiscal years', item.Exercice),
  collectionRoute('analytics', 'Analytical axes with their sections', item.AnalyticalAxe),
  entries,
  society,
]
