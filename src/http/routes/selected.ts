/** Shared by the routes of movements and entries: checks the selection before any of it is read. */
import type { Pool } from 'pg'
import { AppError } from '../../errors.ts'
import { readSelected, type Selected } from '../../exports/read/selected.sql.ts'
import { type Selection, selectionTag } from '../../exports/selection.ts'
import { representationFor } from '../representation.ts'
import type { FolderCall } from '../route.ts'
import { streamExport } from '../stream/stream-export.ts'
import type { EntriesQuery, MovementsQuery } from './movements-query.ts'
import { selectionOf } from './movements-query.ts'

/**
 * @param what part of the file name; also distinguishes the ETags of the two routes
 * @throws {AppError} ERR-NOT-ACCEPTABLE, ERR-FOLDER-NOT-FOUND, ERR-EXERCICE-NOT-FOUND, ERR-JOURNAL-NOT-FOUND
 */
export async function answerSelected(
  { c, query, services, principal, folderId }: FolderCall<MovementsQuery | EntriesQuery>,
  what: 'movements' | 'entries',
): Promise<Response> {
  const representation = representationFor(c)
  const { schemaId } = principal
  const selection = selectionOf(query, { schemaId, folderId, timeZone: services.config.timeZone })
  const selected = await findSelected(services.database, selection)
  const { start, end } = selection.period ?? selected.period!
  return streamExport(c, services, {
    task: { what, selection, after: query.after, ...representation },
    fileName: `${selected.reference ?? folderId}_${what}_${start}_${end}`,
    ledger: {
      version: selected.ledgerVersion,
      tagAt: (version) => selectionTag(what, selection, version),
    },
  })
}

/**
 * Looks up the selection; every id in it must exist.
 * @throws {AppError} ERR-FOLDER-NOT-FOUND, ERR-EXERCICE-NOT-FOUND, ERR-JOURNAL-NOT-FOUND
 */
export async function findSelected(
  database: Pool,
  selection: Pick<Selection, 'schemaId' | 'folderId' | 'exerciceId' | 'journalIds'>,
): Promise<Selected> {
  const { exerciceId, journalIds } = selection
  const selected = await readSelected(database, selection)
  if (!selected) throw new AppError('ERR-FOLDER-NOT-FOUND')
  if (exerciceId !== undefined && !selected.period) throw new AppError('ERR-EXERCICE-NOT-FOUND')
  const unknownIds = journalIds.filter((id) => !selected.journalIds.includes(id))
  if (unknownIds.length > 0) {
    throw new AppError('ERR-JOURNAL-NOT-FOUND', {
      message: `Not journals of this folder: ${unknownIds.join(', ')}`,
    })
  }
  return selected
}
