/** Where an import goes: the folder, found or made, and the exercice in it. */

import type { ClientBase } from 'pg'
import { isId } from '../../db/id.ts'
import type { Period } from '../../formats/rows.ts'
import { rememberLetterings } from '../events.sql.ts'
import type { IdSource } from '../ids.ts'
import { exercices, TableWriter } from '../load.ts'
import { createFirm, createFolder, createSchema, findFoldersByReference } from '../tenants.sql.ts'
import {
  deleteEntriesOfExercice,
  type FolderTarget,
  findExercicesWithin,
  lockFolder,
  lockReference,
} from './import-fec.sql.ts'

export interface RequestedFolder {
  /** Absent: whichever has the reference, or a new one. */
  id: string | undefined
  reference: string
  /** Whether the reference says whose ledger it is. A file name such as ledger.txt does not. */
  isIdentified: boolean
  /** Of a new folder, its firm and its schema. */
  name: string | undefined
  /** Where no name is given. */
  fallbackName: string
  /** 9 or 14 digits. */
  siren: string | undefined
}

/**
 * Without an id, files of one company find the same folder again by its reference, so that a file imported
 * twice is noticed and next year's file joins this year's. A new folder gets a firm and a schema of its own.
 * @throws {Error} no folder with this id, several with this reference, or one that may be another company's
 */
export async function findOrCreateFolder(
  client: ClientBase,
  ids: IdSource,
  requested: RequestedFolder,
): Promise<FolderTarget & { created: boolean }> {
  const folder = await findFolder(client, requested)
  if (folder !== undefined) {
    refuseOtherCompany(folder, requested)
    return { ...folder, created: false }
  }
  await ids.reserve(3)
  const { name = requested.fallbackName, reference, siren = null } = requested
  const [schemaId, firmId, folderId] = [ids.next(), ids.next(), ids.next()]
  await createSchema(client, { id: schemaId, name })
  await createFirm(client, { schemaId, id: firmId, name })
  await createFolder(client, { schemaId, id: folderId, firmId, name, reference, siret: siren })
  return { schemaId, folderId, firmId, name, siret: siren, currency: 'EUR', created: true }
}

async function findFolder(client: ClientBase, requested: RequestedFolder): Promise<FolderTarget | undefined> {
  if (requested.id !== undefined) return folderWithId(client, requested.id)
  await lockReference(client, requested.reference)
  const found = await findFoldersByReference(client, requested.reference)
  if (found.length > 1) {
    const list = found.map((folder) => `${folder.id} (${folder.name})`).join(', ')
    throw new Error(
      `Several folders have the reference ${requested.reference}: say which with --folder: ${list}`,
    )
  }
  return found[0] && folderWithId(client, found[0].id)
}

/** Books of two companies in one folder cannot be told apart again. */
function refuseOtherCompany(folder: FolderTarget, requested: RequestedFolder): void {
  const { folderId, siret, name } = folder
  if (requested.siren !== undefined && siret !== null && siret.slice(0, 9) !== requested.siren.slice(0, 9))
    throw new Error(
      `The ledger is of the company ${requested.siren}, but folder ${folderId} (${name}) is of ${siret}. ` +
        `Give another --folder, or --siren ${siret} if it is of that company after all`,
    )
  // Whoever names the folder by its id has decided.
  if (requested.id !== undefined) return
  const isNamedOtherwise =
    requested.siren === undefined && requested.name !== undefined && requested.name !== name
  if (requested.isIdentified && !isNamedOtherwise) return
  throw new Error(
    `There is a folder with the reference ${requested.reference} already: ${folderId} (${name}), and nothing says ` +
      `that this ledger is of the same company. If it is, give --folder ${folderId}; if not, give the --siren ` +
      `of its company${requested.isIdentified ? '' : ', or a --name for a folder of its own'}`,
  )
}

async function folderWithId(client: ClientBase, id: string): Promise<FolderTarget> {
  const folder = isId(id) ? await lockFolder(client, id) : undefined
  if (folder === undefined)
    throw new Error(`There is no folder ${id}: leave --folder out to have one made, or give the id of one`)
  return folder
}

export interface PreparedExercice {
  exerciceId: string
  /** There was none for this period. */
  isNew: boolean
  /** It held entries, whose letterings were noted before they were deleted. */
  isReplaced: boolean
}

/**
 * The exercice, made where there is none; with `replace` it is empty afterwards.
 * @throws {Error} it holds a ledger and is not to be replaced, is closed, or another exercice has some of its
 * days
 */
export async function prepareExercice(
  client: ClientBase,
  ids: IdSource,
  folder: FolderTarget,
  period: Period,
  replace: boolean,
): Promise<PreparedExercice> {
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
    const { schemaId, folderId } = folder
    const writer = new TableWriter(client, exercices)
    const open = { closedAt: null, closedById: null, closedByFirstName: null, closedByLastName: null }
    writer.add({
      schemaId,
      folderId,
      id,
      startDate: period.start,
      endDate: period.end,
      lettering: 'MONO',
      ...open,
    })
    await writer.flush()
    return { exerciceId: id, isNew: true, isReplaced: false }
  }
  const holder = `Folder ${folder.folderId} (${folder.name})`
  if (same.closed)
    throw new Error(`${holder} has closed the exercice ${days}: a closed exercice cannot be changed`)
  if (same.hasEntries && !replace)
    throw new Error(`${holder} already holds a ledger for ${days}. Import with --replace to replace it`)
  if (same.hasEntries) {
    await rememberLetterings(client, folder, same.id)
    await deleteEntriesOfExercice(client, folder, same.id)
  }
  return { exerciceId: same.id, isNew: false, isReplaced: same.hasEntries }
}
