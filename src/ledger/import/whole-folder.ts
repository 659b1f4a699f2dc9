/** An import that brings a whole ledger, with all its exercices: the folder that it fills, and its end. */
import type { ClientBase } from 'pg'
import { printable } from '../../../packages/terminal/src/printable.ts'
import type { FolderContent } from '../../formats/items/accounting-folder.ts'
import type { Period } from '../../formats/rows.ts'
import type { IdSource } from '../ids.ts'
import { publishImport } from '../publish-import.ts'
import { countLedger, exerciceIds, type FolderTarget } from '../tenants.sql.ts'
import type { Books, IdOf } from './books.ts'
import type { EntryWriter } from './entry-writer.ts'
import { checkSiren, createTenantOf, folderWithId } from './folder-target.ts'
import type { ImportedFolder, ImportRequest } from './import-transaction.ts'

export interface LedgerRequest extends ImportRequest {
  /** IANA name, in which exercices were closed and entries created on their day. */
  timeZone: string
}

interface PreparedFolder extends FolderTarget {
  created: boolean
  /** Ids of the exercices of the ledger that is to be replaced; undefined if there is none. */
  former: string[] | undefined
}

interface ImportedLedger extends ImportedFolder {
  /** Earliest first. */
  exercices: (Period & { id: string })[]
}

/**
 * Creates the folder, or locks it.
 * @param ofFile what a new folder is made of; an existing one keeps what it has
 * @param firmName of a new firm; if it is empty, that of the folder
 * @throws {Error} if it has a ledger and `replace` is not set, has a closed exercice, or belongs to another company
 */
export async function prepareFolder(
  client: ClientBase,
  ids: IdSource,
  { folderId, name, replace }: ImportRequest,
  ofFile: FolderContent,
  firmName = '',
): Promise<PreparedFolder> {
  if (folderId === undefined) {
    const folder = { ...ofFile, name: name ?? ofFile.name }
    const created = await createTenantOf(client, ids, firmName || folder.name, folder)
    return { ...created, created: true, former: undefined }
  }
  const folder = { ...(await folderWithId(client, folderId)), created: false }
  checkSiren(folder, ofFile.siret, 'omit --folder for a new one')
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

/**
 * Publishes the events of the import.
 * @param isByDifference whether what the folder had before stays where it does not differ
 */
export async function endImport(
  client: ClientBase,
  folder: PreparedFolder,
  { accounts, journals, exercices }: Books,
  idOf: IdOf,
  { filled, ...counts }: EntryWriter['counts'],
  isByDifference: boolean,
): Promise<ImportedLedger> {
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
    exercices: periods.toSorted((one, other) => (one.start < other.start ? -1 : 1)),
  }
}
