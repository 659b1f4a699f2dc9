/** Finds or creates the folder that an import fills: an existing folder, or a new one in a tenant of its own. */
import type { ClientBase } from 'pg'
import { printable } from '../../../packages/terminal/src/printable.ts'
import { isId } from '../../db/literal.ts'
import type { FolderContent } from '../../formats/items/accounting-folder.ts'
import type { IdSource } from '../ids.ts'
import { publishImport } from '../publish-import.sql.ts'
import {
  countLedger,
  createFirm,
  createFolder,
  createSchema,
  exerciceIds,
  type FolderTarget,
  lockFolder,
} from '../tenants.sql.ts'
import type { EntryWriter } from './entry-writer.ts'
import type { ImportRequest } from './import-transaction.ts'
import type { IdOf, MasterRows } from './master-data.ts'

/**
 * Finds the folder and locks it, as `lockFolder` does.
 * @param siren the SIREN or SIRET of the company in the file, 9 or 14 digits
 * @param remedy makes advice for the error from the SIREN or SIRET of the folder. The error also suggests another folder
 * @throws {Error} if no folder has this id, or if it belongs to another company: the books of two companies in one
 *   folder could not be separated again
 */
export async function folderWithId(
  client: ClientBase,
  id: string,
  siren: string | null | undefined,
  remedy: (siret: string) => string,
): Promise<FolderTarget> {
  const folder = isId(id) ? await lockFolder(client, id) : undefined
  if (folder === undefined)
    throw new Error(
      `There is no folder ${id}: give the id of an existing one, or omit --folder to create one`,
    )
  const { name, siret } = folder
  if (siren && siret !== null && siret.slice(0, 9) !== siren.slice(0, 9))
    throw new Error(
      `The ledger belongs to the company ${siren}, but folder ${id} (${printable(name)}) to ${siret}. ` +
        `Give another --folder, or ${remedy(siret)}`,
    )
  return folder
}

/** Creates a folder with a firm and a schema of its own. */
export async function createTenantOf(
  client: ClientBase,
  ids: IdSource,
  firmName: string,
  folder: FolderContent,
): Promise<FolderTarget> {
  await ids.reserve(3)
  const [schemaId, firmId, folderId] = [ids.next(), ids.next(), ids.next()]
  await createSchema(client, { id: schemaId, name: firmName })
  await createFirm(client, { schemaId, id: firmId, name: firmName })
  await createFolder(client, { ...folder, schemaId, id: folderId, firmId })
  const { name, siret = null, currency = 'EUR' } = folder
  return { schemaId, folderId, firmId, name, siret, currency }
}

/** An import of a whole ledger, with all its exercices. */
export interface LedgerRequest extends ImportRequest {
  /** The IANA name of the time zone of the days on which exercices were closed and entries created. */
  timeZone: string
}

/**
 * Creates the folder, or locks an existing one.
 * @param ofFile the values for a new folder; an existing one keeps its own
 * @param firmName the name for a new firm; if it is empty, the firm gets the name of the folder
 * @returns `former` has the ids of the exercices of the ledger that is to be replaced; undefined if there is no such
 *   ledger
 * @throws {Error} if the folder has a ledger and `replace` is not set, has a closed exercice, or belongs to another
 *   company
 */
export async function prepareFolder(
  client: ClientBase,
  ids: IdSource,
  { folderId, name, replace }: ImportRequest,
  ofFile: FolderContent,
  firmName = '',
) {
  if (folderId === undefined) {
    const folder = { ...ofFile, name: name ?? ofFile.name }
    const created = await createTenantOf(client, ids, firmName || folder.name, folder)
    return { ...created, created: true, former: undefined }
  }
  const known = await folderWithId(client, folderId, ofFile.siret, () => 'omit --folder for a new one')
  const folder = { ...known, created: false }
  const { isEmpty, accounts, entries, closed } = await countLedger(client, folder)
  if (isEmpty) return { ...folder, former: undefined }
  const holder = `Folder ${folderId} (${printable(folder.name)})`
  if (closed !== null)
    throw new Error(
      `${holder} has closed the exercice ${closed.start} to ${closed.end}: a closed exercice cannot be changed. ` +
        `Omit --folder for a new one`,
    )
  if (!replace)
    throw new Error(
      `${holder} already holds a ledger: ${entries.toLocaleString('en')} entries, ` +
        `${accounts.toLocaleString('en')} accounts. Import with --replace to replace all of it`,
    )
  return { ...folder, former: await exerciceIds(client, folder) }
}
type PreparedFolder = Awaited<ReturnType<typeof prepareFolder>>

/**
 * Publishes the events of the import.
 * @param isByDifference whether rows that are equal in the file have stayed
 */
export async function endImport(
  client: ClientBase,
  folder: PreparedFolder,
  { accounts, journals, exercices }: MasterRows,
  idOf: IdOf,
  { filled, ...counts }: EntryWriter['counts'],
  isByDifference: boolean,
) {
  const { former = [], ...imported } = folder
  const { schemaId, folderId, created: folderCreated } = folder
  const periods = exercices.map(({ id, startDate, endDate }) => ({
    ...{ id: idOf('exercices', id), start: startDate, end: endDate },
  }))
  const ids = periods.map(({ id }) => id)
  await publishImport(client, {
    ...{ schemaId, folderId, folderCreated, replaced: folder.former !== undefined },
    deleted: former.filter((id) => !ids.includes(id)),
    created: ids.filter((id) => !former.includes(id)),
    filled: isByDifference ? [] : [...filled],
    changed: isByDifference ? null : undefined,
  })
  return {
    ...imported,
    ...counts,
    accounts: accounts.length,
    journals: journals.length,
    /** Sorted by start, earliest first. */
    exercices: periods.toSorted((one, other) => (one.start < other.start ? -1 : 1)),
  }
}
