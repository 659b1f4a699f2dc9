/**
 * One route for each collection of a folder (docs/spec/exports.md#collections), and one that lists the folders of a
 * token. They stream like movements, with the same items as the full export.
 */
import { z } from '@hono/zod-openapi'
import { opensEmployees } from '../../auth/principal.ts'
import { collections, collectionTag, dayIn, type FolderCollection } from '../../exports/render/collections.ts'
import { wholeFolder } from '../../exports/selection.ts'
import { AccountingFirm, AccountingFolder, Society } from '../../formats/items/accounting-folder.ts'
import { Account } from '../../formats/items/accounts/account.ts'
import { Vat } from '../../formats/items/accounts/vat.ts'
import { AnalyticalAxe } from '../../formats/items/axis.ts'
import { Exercice } from '../../formats/items/exercice.ts'
import { Bank, Journal } from '../../formats/items/journal.ts'
import { Payment } from '../../formats/items/payment.ts'
import { accountingFolderId, version } from '../query.ts'
import { representationFor } from '../representation.ts'
import { folderRoute, type Route, tokenRoute } from '../route.ts'
import { etagHeaders, streamed } from '../schemas/answer-headers.ts'
import { streamExport } from '../stream/stream-export.ts'
import { findSelected } from './movements-query.ts'

const madQuery = z.strictObject({ version, accountingFolderId })

function collectionRoute(
  collection: FolderCollection,
  operationId: string,
  summary: string,
  schema: z.ZodType,
): Route {
  const { isSingle, revision } = collections[collection]
  const json = isSingle ? schema : z.array(schema)
  return folderRoute({
    operationId,
    path: `/api/v1/mad/${collection}`,
    groups: ['resources'],
    summary,
    query: madQuery,
    ...streamed(json, schema, revision === undefined ? undefined : etagHeaders),
    answer: async ({ c, services, principal, folderId }) => {
      const { schemaId } = principal
      const { timeZone } = services.config
      const representation = representationFor(c)
      const selected = await findSelected(services.database, wholeFolder({ schemaId, folderId }, timeZone))
      const today = dayIn(timeZone, Date.now())
      const owner = { schemaId, folderId, today, timeZone, withEmployees: opensEmployees(principal) }
      const tagAt = (cursor: string) => collectionTag(collection, revision!, owner, cursor)
      return streamExport(c, services, {
        task: { what: collection, owner, ...representation },
        fileName: `${selected.reference || folderId}_${collection}`,
        ledger: revision === undefined ? undefined : { cursor: selected.cursor, tagAt },
      })
    },
  })
}

/** Each folder has its own ledger, so the list has no cursor to build an ETag from. */
const society = tokenRoute({
  operationId: 'listSocieties',
  path: '/api/v1/society',
  groups: [],
  summary: 'The folders that the token opens: those of a firm, or the one of a company token',
  ...streamed(z.array(Society), Society),
  answer: ({ c, services, principal }) => {
    const { schemaId, firmId, folderId } = principal
    const representation = representationFor(c)
    return streamExport(c, services, {
      task: { what: 'society', owner: { schemaId, firmId, folderId }, ...representation },
      fileName: 'society',
      ledger: undefined,
    })
  },
})

export const collectionRoutes: readonly Route[] = [
  collectionRoute('accountingFolder', 'getAccountingFolder', 'The folder itself', AccountingFolder),
  collectionRoute('accountingFirm', 'getAccountingFirm', 'The accounting firm of the folder', AccountingFirm),
  collectionRoute('payments', 'listPayments', 'Modes of payment', Payment),
  collectionRoute('vats', 'listVatCodes', 'VAT codes', Vat),
  collectionRoute('banks', 'listBanks', 'Bank accounts', Bank),
  collectionRoute('journals', 'listJournals', 'Journals', Journal),
  collectionRoute('accounts', 'listAccounts', 'The chart of accounts, with companies and employees', Account),
  collectionRoute('exercices', 'listExercices', 'Fiscal years', Exercice),
  collectionRoute('analytics', 'listAnalyticalAxes', 'Analytical axes with their sections', AnalyticalAxe),
  society,
]
