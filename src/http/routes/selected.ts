/**
 * The routes that export a selection: movements, their digests, entries, and balances. Each checks its selection before any
 * of it is read.
 */

import { z } from '@hono/zod-openapi'
import type { Pool } from 'pg'
import { blocksText, headOf, isKept } from '../../exports/blocks/block.ts'
import { askForBlocks } from '../../exports/blocks/kept-blocks.sql.ts'
import type { SelectionFacts } from '../../exports/read/selected.sql.ts'
import { changesLine, type ExportTask } from '../../exports/run/task.ts'
import { type SelectedItems, type Selection, selectionTag } from '../../exports/selection.ts'
import { streamedForms } from '../../formats/file-formats.ts'
import { AccountBalance } from '../../formats/items/accounts/account.ts'
import { Entry, Movement } from '../../formats/items/entry.ts'
import { refusedCursor } from '../../ledger/changes/cursor.sql.ts'
import { representationFor } from '../representation.ts'
import { type FolderCall, folderRoute, type Route } from '../route.ts'
import { digestHeader, etagHeaders, streamed } from '../schemas/answer-headers.ts'
import { Block, ChangesLine } from '../schemas/changes-schema.ts'
import { type KnownAnswer, streamExport } from '../stream/stream-export.ts'
import {
  balanceQuery,
  blocksQuery,
  entriesQuery,
  findSelected,
  movementsQuery,
  type SelectedQuery,
  selectionOf,
} from './movements-query.ts'

function selectedRoute(
  what: SelectedItems,
  operationId: string,
  summary: string,
  query: typeof movementsQuery | typeof blocksQuery | typeof entriesQuery | typeof balanceQuery,
  item: z.ZodType,
  line = item,
): Route {
  return folderRoute({
    operationId,
    path: `/api/v1/mad/${what === 'blocks' ? 'movements/blocks' : what}`,
    groups: ['movements'],
    summary,
    query,
    ...streamed(z.array(item), line, { ...etagHeaders, ...(what === 'blocks' ? digestHeader : {}) }),
    answer: (call) => answerSelected(call, what),
  })
}

export const selectedRoutes: readonly Route[] = [
  selectedRoute(
    'movements',
    'listMovements',
    'Accounting movements of a fiscal year or a period, streamed',
    movementsQuery,
    Movement,
    z.union([Movement, ChangesLine]).openapi('MovementLine'),
  ),
  selectedRoute(
    'blocks',
    'listMovementBlocks',
    'Digests of movements by ranges of entry ids, to compare a copy with',
    blocksQuery,
    Block,
  ),
  selectedRoute(
    'entries',
    'listEntries',
    'Entries of a fiscal year or a period with their movements, streamed',
    entriesQuery,
    Entry,
    z.union([Entry, ChangesLine]).openapi('EntryLine'),
  ),
  selectedRoute(
    'balance',
    'listBalances',
    'Debit, credit and balance of each account in a fiscal year or a period',
    balanceQuery,
    AccountBalance,
  ),
]

/**
 * @param what part of the file name; also distinguishes the ETags of the routes
 * @throws {AppError} ERR-NOT-ACCEPTABLE, ERR-FOLDER-NOT-FOUND, ERR-EXERCICE-NOT-FOUND, ERR-JOURNAL-NOT-FOUND,
 * ERR-VALIDATION naming `since`, ERR-CURSOR-EXPIRED
 */
async function answerSelected(call: FolderCall<SelectedQuery>, what: SelectedItems): Promise<Response> {
  const { c, query, services, principal, folderId } = call
  const { after, entries, since, wait = 0, columns } = query
  const extended = columns === 'extended'
  const representation = representationFor(c, since === undefined ? streamedForms : ['ndjson'])
  const { schemaId } = principal
  const selection = selectionOf(query, { schemaId, folderId, timeZone: services.config.timeZone })
  const selected =
    since !== undefined && wait > 0
      ? await waitForChange(call, selection, since, wait)
      : await findSelected(services.database, selection, since)
  if (selected.refusal !== null) throw refusedCursor(selected.refusal)
  const { start, end } = selection.period ?? selected.period!
  const task: ExportTask =
    what === 'balance' || what === 'blocks'
      ? { what, selection, ...representation }
      : { what, selection, after, entries, since, extended, ...representation }
  const tagAt = (cursor: string) => selectionTag(what, selection, cursor, extended)
  return streamExport(c, services, {
    task,
    fileName: `${selected.reference || folderId}_${what}_${start}_${end}`,
    ledger: { cursor: selected.cursor, tagAt },
    known: await knownAnswer(services.database, task, selected),
  })
}

/** The answer, if it is known without reading: nothing has changed, or digests of this state are kept. */
async function knownAnswer(
  database: Pool,
  task: ExportTask,
  { cursor }: SelectionFacts,
): Promise<KnownAnswer | undefined> {
  if ('since' in task && task.since === cursor) return { body: changesLine(cursor, cursor, []), rows: 0 }
  if (task.what !== 'blocks' || !isKept(task.selection)) return undefined
  const { selection, form } = task
  const kept = await askForBlocks(database, selection, cursor)
  if (!kept) return undefined
  const { blocks } = kept
  return { body: blocksText(blocks, form), rows: blocks.length, blocks: headOf(blocks, selection) }
}

/**
 * Looks up a selection as soon as the folder's ledger has another state than the caller's, or when the time is over
 * (docs/spec/changes.md#waiting). A waiting request holds no slot and no connection of the database; it takes a slot
 * once there is something to send. Requests in line for a slot count as waiting, so their number is limited, too.
 * @param since the caller's cursor
 * @returns the selection; at once, and without a slot, if the cursor is refused
 * @throws {AppError} as findSelected; ERR-UNAVAILABLE also if too many requests wait
 */
async function waitForChange(
  { services, folderId, slot }: Pick<FolderCall<never>, 'services' | 'folderId' | 'slot'>,
  selection: Selection,
  since: string,
  waitSeconds: number,
): Promise<SelectionFacts> {
  const deadline = performance.now() + waitSeconds * 1000
  // The watch begins before the look-up, so that no change in between is missed.
  using watch = await services.notifications.watch('grandlivre_ledgers', folderId)
  slot.over.addEventListener('abort', () => watch.stop(), { once: true })
  for (;;) {
    const selected = await findSelected(services.database, selection, since)
    if (selected.refusal !== null) return selected
    if (selected.cursor !== since) {
      watch.admit()
      await slot.acquireInTurn()
      return selected
    }
    slot.release()
    if (!(await watch.next(deadline - performance.now()))) return selected
    // One commit wakes all requests that wait for a folder: a few at a time look up its state and read it.
    await slot.acquireInTurn()
    // The client has left: nothing is looked up for it.
    if (slot.over.aborted) return selected
  }
}
