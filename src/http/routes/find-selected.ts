import type { Pool } from 'pg'
import { AppError } from '../../errors.ts'
import { readSelected, type Selected } from '../../exports/read/selected.sql.ts'
import type { Selection } from '../../exports/selection.ts'

/**
 * Looks up the selection; every id in it must exist.
 * @throws {AppError} ERR-FOLDER-NOT-FOUND, ERR-EXERCICE-NOT-FOUND, ERR-JOURNAL-NOT-FOUND
 */
export async function findSelected(
  database: Pool,
  selection: Pick<Selection, 'schemaId' | 'folderId' | 'exerciceId' | 'journalIds' | 'timeZone'>,
  since?: string,
): Promise<Selected> {
  const { exerciceId, journalIds } = selection
  const selected = await readSelected(database, selection, since)
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
