/** The folder that an import fills: an existing one, or a new one in a tenant of its own. */
import type { ClientBase } from 'pg'
import { printable } from '../../../packages/terminal/src/printable.ts'
import { isId } from '../../db/literal.ts'
import type { FolderContent } from '../../formats/items/accounting-folder.ts'
import type { IdSource } from '../ids.ts'
import { createFirm, createFolder, createSchema, type FolderTarget, lockFolder } from '../tenants.sql.ts'

/** Locks the folder, as `lockFolder` does. @throws {Error} there is none with this id */
export async function folderWithId(client: ClientBase, id: string): Promise<FolderTarget> {
  const folder = isId(id) ? await lockFolder(client, id) : undefined
  if (folder === undefined)
    throw new Error(
      `There is no folder ${id}: give the id of an existing one, or omit --folder to create one`,
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

/**
 * The books of two companies in one folder could not be separated again.
 * @param siren of the company in the file, 9 or 14 digits
 * @param remedy a further one
 * @throws {Error} if the folder belongs to another company
 */
export function checkSiren(folder: FolderTarget, siren: string | null | undefined, remedy: string): void {
  const { folderId, name, siret } = folder
  if (!siren || siret === null || siret.slice(0, 9) === siren.slice(0, 9)) return
  throw new Error(
    `The ledger belongs to the company ${siren}, but folder ${folderId} (${printable(name)}) to ${siret}. ` +
      `Give another --folder, or ${remedy}`,
  )
}
