/**
 * The routes that export a selection: movements, entries, and balances. Each checks its selection before any of it is
 * read.
 */
import { z } from '@hono/zod-openapi'
import { changesLine } from '../../exports/run/changes-line.ts'
import type { ExportTask } from '../../exports/run/task.ts'
import { type SelectedItems, selectionTag } from '../../exports/selection.ts'
import { streamedForms } from '../../formats/file-formats.ts'
import { refuse } from '../../ledger/changes/refuse.ts'
import { representationFor } from '../representation.ts'
import { type FolderCall, folderRoute, type Route } from '../route.ts'
import { conditionalRequest } from '../schemas/answer-headers.ts'
import { ChangesLine } from '../schemas/changes-schema.ts'
import { AccountBalance } from '../schemas/collection-schemas.ts'
import { Entry, Movement } from '../schemas/movement-schema.ts'
import { conditionalAnswers } from '../schemas/streamed-answers.ts'
import { streamExport } from '../stream/stream-export.ts'
import { findSelected } from './find-selected.ts'
import type { BalanceQuery, EntriesQuery, MovementsQuery } from './movements-query.ts'
import { balanceQuery, entriesQuery, movementsQuery, selectionOf } from './movements-query.ts'
import { waitForChange } from './wait-for-change.ts'

function selectedRoute(
  what: SelectedItems,
  summary: string,
  query: typeof movementsQuery | typeof entriesQuery | typeof balanceQuery,
  item: z.ZodType,
  line = item,
): Route {
  return folderRoute({
    method: 'get',
    path: `/api/v1/mad/${what}`,
    levels: ['api', 'firm'],
    summary,
    query,
    waits,
    headers: conditionalRequest,
    answers: conditionalAnswers(z.array(item), line),
    answer: (call) => answerSelected(call, what),
  })
}

export const selectedRoutes: readonly Route[] = [
  selectedRoute(
    'movements',
    'Accounting movements of a fiscal year or a period, streamed',
    movementsQuery,
    Movement,
    z.union([Movement, ChangesLine]),
  ),
  selectedRoute(
    'entries',
    'Entries of a fiscal year or a period with their movements, streamed',
    entriesQuery,
    Entry,
    z.union([Entry, ChangesLine]),
  ),
  selectedRoute(
    'balance',
    'Debit, credit and balance of each account in a fiscal year or a period',
    balanceQuery,
    AccountBalance,
  ),
]

/** The parameters of a part, which balances do not have. */
const wholeSelection = { after: undefined, entries: undefined, since: undefined, wait: undefined }

type Query = MovementsQuery | EntriesQuery | BalanceQuery

function waits(query: Query): boolean {
  return 'wait' in query && query.wait !== undefined && query.wait > 0
}

/**
 * @param what part of the file name; also distinguishes the ETags of the routes
 * @throws {AppError} ERR-NOT-ACCEPTABLE, ERR-FOLDER-NOT-FOUND, ERR-EXERCICE-NOT-FOUND, ERR-JOURNAL-NOT-FOUND,
 * ERR-VALIDATION naming `since`, ERR-CURSOR-EXPIRED
 */
async function answerSelected(call: FolderCall<Query>, what: SelectedItems): Promise<Response> {
  const { c, query, services, principal, folderId } = call
  const { after, entries, since, wait = 0 } = { ...wholeSelection, ...query }
  const representation = representationFor(c, since === undefined ? streamedForms : ['ndjson'])
  const { schemaId } = principal
  const selection = selectionOf(query, { schemaId, folderId, timeZone: services.config.timeZone })
  const selected =
    since !== undefined && waits(query)
      ? await waitForChange(call, selection, since, wait)
      : await findSelected(services.database, selection, since)
  if (selected.refusal !== null) throw refuse(selected.refusal, 'main database')
  const { start, end } = selection.period ?? selected.period!
  const task: ExportTask =
    what === 'balance'
      ? { what, selection, ...representation }
      : { what, selection, after, entries, since, ...representation }
  return streamExport(c, services, {
    task,
    fileName: `${selected.reference || folderId}_${what}_${start}_${end}`,
    ledger: {
      cursor: selected.cursor,
      tagAt: (cursor) => selectionTag(what, selection, cursor),
    },
    known: since === selected.cursor ? changesLine({ since, cursor: since, entries: [] }) : undefined,
    hasWaited: waits(query),
  })
}
