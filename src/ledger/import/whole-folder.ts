/** The folder of an import that brings a whole ledger, with all its exercices. */
import type { ClientBase } from 'pg'
import { printable } from '../../../packages/terminal/src/printable.ts'
import type { IdSource } from '../ids.ts'
import { countLedger, exerciceIds, type Folder, type FolderTarget } from '../tenants.sql.ts'
import { checkSiren, createTenantOf, folderWithId } from './folder-target.ts'

export interface RequestedLedger {
  /** Decimal digits. If absent: a new folder, in a tenant of its own. */
  folderId: string | undefined
  /** Replaces the ledger of the folder. */
  replace: boolean
  /** Of the file: a new folder is made of it, an existing one keeps what it has. */
  firmName: string
  folder: Omit<Folder, 'schemaId' | 'id' | 'firmId'>
}

export interface PreparedFolder extends FolderTarget {
  created: boolean
  /** Ids of the exercices of the ledger that is to be replaced; undefined if there is none. */
  former: string[] | undefined
}

/**
 * Creates the folder, or locks it.
 * @throws {Error} if it has a ledger and `replace` is not set, has a closed exercice, or belongs to another company
 */
export async function prepareFolder(
  client: ClientBase,
  ids: IdSource,
  { folderId, replace, firmName, folder }: RequestedLedger,
): Promise<PreparedFolder> {
  if (folderId === undefined)
    return { ...(await createTenantOf(client, ids, firmName, folder)), created: true, former: undefined }
  const found = await folderWithId(client, folderId)
  checkSiren(found, folder.siret, 'omit --folder for a new one')
  const { isEmpty, accounts, entries, closed } = await countLedger(client, found)
  if (isEmpty) return { ...found, created: false, former: undefined }
  const holder = `Folder ${folderId} (${printable(found.name)})`
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
  return { ...found, created: false, former: await exerciceIds(client, found) }
}
