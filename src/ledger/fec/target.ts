/** Where an import goes: the folder, found or made, and the exercice in it. */
import type { ClientBase } from 'pg'
import type { IdSource } from '../ids.ts'
import {
  deleteEntriesOfExercice,
  type FolderTarget,
  findExercicesWithin,
  lockFolder,
  lockReference,
} from '../import-fec.sql.ts'
import { exercices, TableWriter } from '../load.ts'
import { createFirm, createFolder, createSchema, findFoldersByReference } from '../tenants.sql.ts'
import type { Period } from './survey.ts'

export interface WantedFolder {
  /** Absent: whichever has the reference, or a new one. */
  id: string | undefined
  reference: string
  /** Of a new folder, its firm and its schema. */
  name: string
  /** Of a new folder: 9 or 14 digits. */
  siren: string | undefined
}

/**
 * Without an id, files of one company find the same folder again by its reference, so that a file imported
 * twice is noticed and next year's file joins this year's. A new folder gets a firm and a schema of its own.
 * @throws {Error} no folder with this id, or several with this reference
 */
export async function findOrCreateFolder(
  client: ClientBase,
  ids: IdSource,
  wanted: WantedFolder,
): Promise<FolderTarget & { created: boolean }> {
  if (wanted.id !== undefined) return { ...(await folderWithId(client, wanted.id)), created: false }
  await lockReference(client, wanted.reference)
  const found = await findFoldersByReference(client, wanted.reference)
  if (found.length > 1) {
    const list = found.map((folder) => `${folder.id} (${folder.name})`).join(', ')
    throw new Error(
      `Several folders have the reference ${wanted.reference}: say which with --folder: ${list}`,
    )
  }
  if (found[0] !== undefined) return { ...(await folderWithId(client, found[0].id)), created: false }

  await ids.reserve(3)
  const { name, reference, siren = null } = wanted
  const [schemaId, firmId, folderId] = [ids.next(), ids.next(), ids.next()]
  await createSchema(client, { id: schemaId, name })
  await createFirm(client, { schemaId, id: firmId, name })
  await createFolder(client, { schemaId, id: folderId, firmId, name, reference, siret: siren })
  return { schemaId, folderId, firmId, name, currency: 'EUR', created: true }
}

async function folderWithId(client: ClientBase, id: string): Promise<FolderTarget> {
  const folder = /^\d{1,15}$/.test(id) ? await lockFolder(client, id) : undefined
  if (folder === undefined)
    throw new Error(`There is no folder ${id}: leave --folder out to have one made, or give the id of one`)
  return folder
}

/**
 * The id of the exercice, made where there is none; with `replace` it is empty afterwards.
 * @throws {Error} it holds a ledger and is not to be replaced, is closed, or another exercice has some of its
 * days
 */
export async function takeExercice(
  client: ClientBase,
  ids: IdSource,
  folder: FolderTarget,
  period: Period,
  replace: boolean,
): Promise<string> {
  const within = await findExercicesWithin(client, folder, period.start, period.end)
  const other = within.find(({ start, end }) => start !== period.start || end !== period.end)
  const wanted = `${period.start} to ${period.end}`
  if (other !== undefined) {
    const exists = `folder ${folder.folderId} already has the exercice ${other.start} to ${other.end}`
    throw new Error(
      `The fiscal year ${wanted} overlaps: ${exists}. Give --start and --end, or another --folder`,
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
    return id
  }
  const holder = `Folder ${folder.folderId} (${folder.name}) already holds a ledger for ${wanted}`
  if (same.hasEntries && !replace) throw new Error(`${holder}. Import with --replace to replace it`)
  if (same.closed)
    throw new Error(`${holder}, and that exercice is closed: a closed exercice cannot be changed`)
  if (same.hasEntries) await deleteEntriesOfExercice(client, folder, same.id)
  return same.id
}
