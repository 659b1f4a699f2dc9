/**
 * The routes that export a selection: movements, entries, and balances. Each checks its selection before any of it is
 * read.
 */
import { z } from '@hono/zod-openapi'
import type { ExportTask } from '../../exports/run/task.ts'
import { type SelectedItems, selectionTag } from '../../exports/selection.ts'
import { representationFor } from '../representation.ts'
import { type FolderCall, folderRoute, type Route } from '../route.ts'
import { conditionalRequest } from '../schemas/answer-headers.ts'
import { AccountBalance } from '../schemas/collection-schemas.ts'
import { Entry, Movement } from '../schemas/movement-schema.ts'
import { conditionalAnswers } from '../schemas/streamed-answers.ts'
import { streamExport } from '../stream/stream-export.ts'
import { findSelected } from './find-selected.ts'
import type { BalanceQuery, EntriesQuery, MovementsQuery } from './movements-query.ts'
import { balanceQuery, entriesQuery, movementsQuery, selectionOf } from './movements-query.ts'

function selectedRoute(
  what: SelectedItems,
  summary: string,
  query: typeof movementsQuery | typeof entriesQuery | typeof balanceQuery,
  item: z.ZodType,
): Route {
  return folderRoute({
    method: 'get',
    path: `/api/v1/mad/${what}`,
    levels: ['api', 'firm'],
    summary,
    query,
    headers: conditionalRequest,
    answers: conditionalAnswers(z.array(item), item),
    answer: (call) => answerSelected(call, what),
  })
}

export const selectedRoutes: readonly Route[] = [
  selectedRoute(
    'movements',
    'Accounting movements of a fiscal year or a period, streamed',
    movementsQuery,
    Movement,
  ),
  selectedRoute(
    'entries',
    'Entries of a fiscal year or a period with their movements, streamed',
    entriesQuery,
    Entry,
  ),
  selectedRoute(
    'balance',
    'Debit, credit and balance of each account in a fiscal year or a period',
    balanceQuery,
    AccountBalance,
  ),
]

/**
 * @param what part of the file name; also distinguishes the ETags of the routes
 * @throws {AppError} ERR-NOT-ACCEPTABLE, ERR-FOLDER-NOT-FOUND, ERR-EXERCICE-NOT-FOUND, ERR-JOURNAL-NOT-FOUND
 */
async function answerSelected(
  { c, query, services, principal, folderId }: FolderCall<MovementsQuery | EntriesQuery | BalanceQuery>,
  what: SelectedItems,
): Promise<Response> {
  const representation = representationFor(c)
  const { schemaId } = principal
  const selection = selectionOf(query, { schemaId, folderId, timeZone: services.config.timeZone })
  const selected = await findSelected(services.database, selection)
  const { start, end } = selection.period ?? selected.period!
  const after = 'after' in query ? query.after : undefined
  const task: ExportTask =
    what === 'balance'
      ? { what, selection, ...representation }
      : { what, selection, after, ...representation }
  return streamExport(c, services, {
    task,
    fileName: `${selected.reference || folderId}_${what}_${start}_${end}`,
    ledger: {
      cursor: selected.cursor,
      tagAt: (cursor) => selectionTag(what, selection, cursor),
    },
  })
}
