/** Finds or creates the folder of an import and the exercice in it. */

import type { ClientBase } from 'pg'
import type { Period } from '../../formats/rows.ts'
import type { IdSource } from '../ids.ts'
import { keptIds, loadBooks, noBooks } from '../import/books.ts'
import { checkSiren, createTenantOf, folderWithId } from '../import/folder-target.ts'
import { type FolderTarget, findFoldersByReference } from '../tenants.sql.ts'
import { findExercicesWithin, lockReference } from './import-fec.sql.ts'

export interface RequestedFolder {
  /** Absent: the folder with the reference, or a new one. */
  id: string | undefined
  reference: string
  /** Whether the reference identifies the company. A file name such as ledger.txt does not. */
  isIdentified: boolean
  /** Name of a new folder, its firm and its schema. */
  name: string | undefined
  /** Used if no name is given. */
  fallbackName: string
  /** 9 or 14 digits. */
  siren: string | undefined
}

/**
 * Without an id, files of one company find the same folder by its reference, so that a repeated import is detected and
 * next year's file joins this year's. A new folder gets its own firm and schema.
 * @throws {Error} if no folder has this id, several have this reference, or the folder may belong to another company
 */
export async function findOrCreateFolder(client: ClientBase, ids: IdSource, requested: RequestedFolder) {
  const folder = await findFolder(client, requested)
  if (folder !== undefined) {
    refuseOtherCompany(folder, requested)
    return { ...folder, created: false }
  }
  const { name = requested.fallbackName, reference, siren = null } = requested
  return { ...(await createTenantOf(client, ids, name, { name, reference, siret: siren })), created: true }
}

async function findFolder(client: ClientBase, requested: RequestedFolder): Promise<FolderTarget | undefined> {
  if (requested.id !== undefined) return folderWithId(client, requested.id)
  await lockReference(client, requested.reference)
  const found = await findFoldersByReference(client, requested.reference)
  if (found.length > 1) {
    const list = found.map((folder) => `${folder.id} (${folder.name})`).join(', ')
    throw new Error(
      `Several folders have the reference ${requested.reference}: choose one with --folder: ${list}`,
    )
  }
  return found[0] && folderWithId(client, found[0].id)
}

/** The books of two companies in one folder could not be separated again. */
function refuseOtherCompany(folder: FolderTarget, requested: RequestedFolder): void {
  const { folderId, name, siret } = folder
  checkSiren(folder, requested.siren, `--siren ${siret} if it does belong to that company`)
  // Naming the folder by id is a decision.
  if (requested.id !== undefined) return
  const isNamedOtherwise =
    requested.siren === undefined && requested.name !== undefined && requested.name !== name
  if (requested.isIdentified && !isNamedOtherwise) return
  throw new Error(
    `A folder with the reference ${requested.reference} exists: ${folderId} (${name}), but nothing shows ` +
      `that this ledger belongs to the same company. If it does, give --folder ${folderId}; if not, give the --siren ` +
      `of its company${requested.isIdentified ? '' : ', or a --name for a folder of its own'}`,
  )
}

/**
 * Finds or creates the exercice.
 * @returns `isNew` if it was created for this period, `isReplaced` if it holds entries, which are to be replaced
 * @throws {Error} if it has entries and `replace` is not set, if it is closed, or if another exercice overlaps the
 *   period
 */
export async function prepareExercice(
  client: ClientBase,
  ids: IdSource,
  folder: FolderTarget,
  period: Period,
  replace: boolean,
): Promise<{ exerciceId: string; isNew: boolean; isReplaced: boolean }> {
  const within = await findExercicesWithin(client, folder, period.start, period.end)
  const other = within.find(({ start, end }) => start !== period.start || end !== period.end)
  const days = `${period.start} to ${period.end}`
  if (other !== undefined) {
    const exists = `folder ${folder.folderId} already has the exercice ${other.start} to ${other.end}`
    throw new Error(
      `The fiscal year ${days} overlaps: ${exists}. Give --start and --end, or another --folder`,
    )
  }
  const same = within[0]
  if (same === undefined) {
    await ids.reserve(1)
    const id = ids.next()
    const { start: startDate, end: endDate } = period
    const rows = { ...noBooks(), exercices: [{ id, startDate, endDate, lettering: 'MONO' as const }] }
    await loadBooks(client, folder, rows, keptIds, false)
    return { exerciceId: id, isNew: true, isReplaced: false }
  }
  const holder = `Folder ${folder.folderId} (${folder.name})`
  if (same.closed)
    throw new Error(`${holder} has closed the exercice ${days}: a closed exercice cannot be changed`)
  if (same.hasEntries && !replace)
    throw new Error(`${holder} already holds a ledger for ${days}. Import with --replace to replace it`)
  return { exerciceId: same.id, isNew: false, isReplaced: same.hasEntries }
}
