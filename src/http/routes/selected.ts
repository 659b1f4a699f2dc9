/** What the routes of movements and of entries share: the selection, looked at before any of it is read. */
import type { ClientBase } from 'pg'
import { inTenant } from '../../db/pool.ts'
import { AppError } from '../../errors.ts'
import { findJournals, readSelected, type Selected } from '../../exports/read/movements.sql.ts'
import type { Selection } from '../../exports/selection.ts'
import { selectionTag } from '../../exports/selection.ts'
import type { FolderCall } from '../route.ts'
import type { StreamedExport } from '../stream-export.ts'
import { representationFor } from '../stream-export.ts'
import type { EntriesQuery, MovementsQuery } from './movements-query.ts'
import { selectionOf } from './movements-query.ts'

/**
 * @param what stands in the file's name and tells the ETags of the two routes apart
 * @throws {AppError} ERR-NOT-ACCEPTABLE, ERR-FOLDER-NOT-FOUND, ERR-EXERCICE-NOT-FOUND, ERR-JOURNAL-NOT-FOUND
 */
export async function lookAtSelection(
  { c, query, services, principal, folderId }: FolderCall<MovementsQuery | EntriesQuery>,
  what: 'movements' | 'entries',
): Promise<{ selection: Selection; asked: Omit<StreamedExport, 'start'> }> {
  const representation = representationFor(c)
  const { schemaId } = principal
  const selection = selectionOf(query, { schemaId, folderId, timeZone: services.config.timeZone })
  const selected = await inTenant(services.database, schemaId, (client) => findSelected(client, selection))
  const { start, end } = selection.period ?? selected.period!
  return {
    selection,
    asked: {
      representation,
      fileName: `${selected.reference ?? folderId}_${what}_${start}_${end}`,
      ledger: {
        version: selected.ledgerVersion,
        tagAt: (version) => selectionTag(what, selection, version),
      },
      after: query.after,
    },
  }
}

/**
 * What is selected, all of it there.
 * @throws {AppError} ERR-FOLDER-NOT-FOUND, ERR-EXERCICE-NOT-FOUND, ERR-JOURNAL-NOT-FOUND
 */
export async function findSelected(
  client: ClientBase,
  asked: Pick<Selection, 'schemaId' | 'folderId' | 'exerciceId' | 'journalIds'>,
): Promise<Selected> {
  const { exerciceId, journalIds } = asked
  const selected = await readSelected(client, asked)
  if (!selected) throw new AppError('ERR-FOLDER-NOT-FOUND')
  if (exerciceId !== undefined && !selected.period) throw new AppError('ERR-EXERCICE-NOT-FOUND')
  const journals = journalIds.length === 0 ? [] : await findJournals(client, asked)
  const strange = journalIds.filter((id) => !journals.includes(id))
  if (strange.length > 0) {
    throw new AppError('ERR-JOURNAL-NOT-FOUND', {
      message: `Not journals of this folder: ${strange.join(', ')}`,
    })
  }
  return selected
}
