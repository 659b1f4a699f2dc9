/** The folder of an import that brings a whole ledger, with all its exercices. */
import type { ClientBase } from 'pg'
import { printable } from '../../../packages/terminal/src/printable.ts'
import type { IdSource } from '../ids.ts'
import { publishImport } from '../publish-import.ts'
import { countLedger, exerciceIds, type Folder, type FolderTarget } from '../tenants.sql.ts'
import type { WrittenCounts } from './entry-writer.ts'
import { checkSiren, createTenantOf, folderWithId } from './folder-target.ts'
import type { ImportOptions } from './import-transaction.ts'

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

export interface WholeImportOptions<Imported> extends ImportOptions<Imported> {
  /** IANA name, in which exercices were closed and entries created on their day. */
  timeZone: string
}

/** What every import of a whole ledger reports. */
export interface LoadedLedger extends PreparedFolder, WrittenCounts {
  accounts: number
  journals: number
  /** Earliest first. */
  exercices: LoadedExercice[]
}

export interface LoadedExercice {
  id: string
  start: string
  end: string
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

/** @param isByDifference whether what the folder had before stays where it does not differ */
export async function publishLedger(
  client: ClientBase,
  { schemaId, folderId, created: folderCreated, former }: PreparedFolder,
  exercices: LoadedExercice[],
  filled: ReadonlySet<string>,
  isByDifference: boolean,
): Promise<void> {
  const before = former ?? []
  const ids = exercices.map(({ id }) => id)
  await publishImport(client, {
    ...{ schemaId, folderId, folderCreated, replaced: former !== undefined },
    deleted: before.filter((id) => !ids.includes(id)),
    created: ids.filter((id) => !before.includes(id)),
    filled: isByDifference ? [] : [...filled],
    changed: isByDifference ? null : undefined,
  })
}

export const earliestFirst = (exercices: LoadedExercice[]) =>
  exercices.toSorted((one, other) => (one.start < other.start ? -1 : 1))
