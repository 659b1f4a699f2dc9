/** What the routes of movements and of entries share: the selection is checked before any of it is read. */
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
 * @param what stands in the file's name and tells the ETags of the two routes apart
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
 * What is selected, all of it there.
 * @throws {AppError} ERR-FOLDER-NOT-FOUND, ERR-EXERCICE-NOT-FOUND, ERR-JOURNAL-NOT-FOUND
 */
export async function findSelected(
  database: Pool,
  asked: Pick<Selection, 'schemaId' | 'folderId' | 'exerciceId' | 'journalIds'>,
): Promise<Selected> {
  const { exerciceId, journalIds } = asked
  const selected = await readSelected(database, asked)
  if (!selected) throw new AppError('ERR-FOLDER-NOT-FOUND')
  if (exerciceId !== undefined && !selected.period) throw new AppError('ERR-EXERCICE-NOT-FOUND')
  const strange = journalIds.filter((id) => !selected.journalIds.includes(id))
  if (strange.length > 0) {
    throw new AppError('ERR-JOURNAL-NOT-FOUND', {
      message: `Not journals of this folder: ${strange.join(', ')}`,
    })
  }
  return selected
}
