/** Determines the folder of an import, by its options or the name of the file, and the exercice in that folder. */

import { basename } from 'node:path'
import type { ClientBase } from 'pg'
import { parseDay } from '../../formats/fec/fields.ts'
import type { Period } from '../../formats/rows.ts'
import type { IdSource } from '../ids.ts'
import { createTenantOf, folderWithId } from '../import/folder-target.ts'
import { keptIds, loadMasterRows, noMasterRows } from '../import/master-data.ts'
import { type FolderTarget, findFoldersByReference } from '../tenants.sql.ts'
import { findExercicesWithin, lockReference } from './import-fec.sql.ts'

/**
 * The regulation prescribes the file name `<SIREN>FEC<last day of the year, YYYYMMDD>.txt`. The digits before `FEC`
 * identify the ledger again in later imports. If they are all zero (an anonymized company), the whole name identifies
 * the ledger, and with it the year.
 * @throws {Error} if the SIREN of the options has another number of digits
 */
export function nameFolder(
  file: string,
  options: { siren?: string | undefined; folderId?: string | undefined; name?: string | undefined },
) {
  const stem = basename(file).replace(/\.[^.]*(?:\.(?:gz|zst))?$/i, '')
  const [, digits, day = ''] = /^(\d+)FEC(\d{8})/i.exec(stem) ?? []
  const isUnknown = digits !== undefined && /^0+$/.test(digits)
  const siren = options.siren ?? (/^\d{9}$/.test(digits ?? '') && !isUnknown ? digits : undefined)
  if (siren !== undefined && !/^(\d{9}|\d{14})$/.test(siren))
    throw new Error(`--siren must be 9 digits (or 14, a SIRET), not "${siren}"`)
  // A FEC belongs to a company. A SIRET names one of its establishments, and begins with the SIREN of the company.
  const identity = siren?.slice(0, 9) ?? (isUnknown ? stem : digits) ?? options.name
  return {
    /** If absent, the folder with the reference is used, or a new one is created. */
    id: options.folderId,
    reference: identity ?? stem,
    /** Whether the reference identifies the company. A file name such as ledger.txt does not. */
    isIdentified: identity !== undefined,
    /** The name for a new folder, its firm and its schema. By default, the name of the file without its endings. */
    name: options.name,
    stem,
    /** 9 or 14 digits. */
    siren,
    /** The last day of the fiscal year according to the name of the file, `YYYY-MM-DD`. */
    end: parseDay(day)?.day,
  }
}
export type NamedFolder = ReturnType<typeof nameFolder>

/**
 * Without an id, the folder is found by its reference. All files of one company have the same reference, so a repeated
 * import is detected and next year's file joins this year's. A new folder gets a firm and a schema of its own.
 * @throws {Error} if no folder has this id, several have this reference, or the folder may belong to another company
 */
export async function findOrCreateFolder(
  client: ClientBase,
  ids: IdSource,
  named: NamedFolder,
): Promise<FolderTarget & { created: boolean }> {
  const { reference, siren = null } = named
  let { id } = named
  if (id === undefined) {
    await lockReference(client, reference)
    const [first, ...others] = await findFoldersByReference(client, reference)
    if (first === undefined) {
      const name = named.name ?? named.stem
      return {
        ...(await createTenantOf(client, ids, name, { name, reference, siret: siren })),
        created: true,
      }
    }
    if (others.length > 0) {
      const list = [first, ...others].map((folder) => `${folder.id} (${folder.name})`).join(', ')
      throw new Error(`Several folders have the reference ${reference}: choose one with --folder: ${list}`)
    }
    id = first.id
  }
  const bySiren = (siret: string) => `--siren ${siret} if it does belong to that company`
  const folder = await folderWithId(client, id, siren, bySiren)
  // Naming the folder by id is a decision of the caller, and needs no further check.
  if (named.id === undefined) refuseUnknownCompany(folder, named)
  return { ...folder, created: false }
}

/**
 * Refuses a folder that may belong to another company, because the books of two companies in one folder could not be
 * separated again.
 */
function refuseUnknownCompany({ folderId, name }: FolderTarget, named: NamedFolder): void {
  const { reference, isIdentified } = named
  const isNamedOtherwise = named.siren === undefined && named.name !== undefined && named.name !== name
  if (isIdentified && !isNamedOtherwise) return
  throw new Error(
    `A folder with the reference ${reference} exists: ${folderId} (${name}), but nothing shows ` +
      `that this ledger belongs to the same company. If it does, give --folder ${folderId}; if not, give the --siren ` +
      `of its company${isIdentified ? '' : ', or a --name for a folder of its own'}`,
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
  { start, end }: Period,
  replace: boolean,
): Promise<{ exerciceId: string; isNew: boolean; isReplaced: boolean }> {
  const within = await findExercicesWithin(client, folder, start, end)
  const other = within.find((exercice) => exercice.start !== start || exercice.end !== end)
  const days = `${start} to ${end}`
  if (other !== undefined)
    throw new Error(
      `The fiscal year ${days} overlaps: folder ${folder.folderId} already has the exercice ` +
        `${other.start} to ${other.end}. Give --start and --end, or another --folder`,
    )
  const [same] = within
  if (same === undefined) {
    await ids.reserve(1)
    const exercice = { id: ids.next(), startDate: start, endDate: end, lettering: 'MONO' as const }
    await loadMasterRows(client, folder, { ...noMasterRows(), exercices: [exercice] }, keptIds, false)
    return { exerciceId: exercice.id, isNew: true, isReplaced: false }
  }
  const holder = `Folder ${folder.folderId} (${folder.name})`
  if (same.closed)
    throw new Error(`${holder} has closed the exercice ${days}: a closed exercice cannot be changed`)
  if (same.hasEntries && !replace)
    throw new Error(`${holder} already holds a ledger for ${days}. Import with --replace to replace it`)
  return { exerciceId: same.id, isNew: false, isReplaced: same.hasEntries }
}
