/**
 * Statements of staff commands on tenants and their folders. They run as the owner of the tables, which is not subject
 * to row-level security.
 */

import type { ClientBase } from 'pg'
import { queryRow, queryRows } from '../db/statement.ts'
import { type FolderContent, folderTable } from '../formats/items/accounting-folder.ts'
import { noAddress } from '../formats/items/accounts/address.ts'
import type { FolderKey, Period } from '../formats/rows.ts'
import { TableWriter } from './load.ts'

export async function createSchema(client: ClientBase, schema: { id: string; name: string }): Promise<void> {
  const { id, name } = schema
  await client.query(`insert into grandlivre.schemas (schema_id, name) values ($1, $2)`, [id, name])
}

/** @param firm `siret`: a SIREN or SIRET, 9 or 14 digits */
export async function createFirm(
  client: ClientBase,
  firm: { schemaId: string; id: string; name: string; siret?: string | null },
): Promise<void> {
  const values = [firm.schemaId, firm.id, firm.name, firm.siret ?? null]
  const text = 'insert into grandlivre.firms (schema_id, id, name, siret) values ($1, $2, $3, $4)'
  await client.query(text, values)
}

export async function createFolder(
  client: ClientBase,
  folder: FolderContent & { schemaId: string; id: string; firmId: string },
): Promise<void> {
  const defaults = { capital: 0n, currency: 'EUR', address: noAddress, rcsProducerId: '', rcsName: '' }
  const writer = new TableWriter(client, folderTable)
  writer.add({ ...defaults, ...folder })
  await writer.flush()
}

/**
 * Finds the folders of any tenant with this reference, oldest first. There may be several, as references are not
 * unique.
 */
export async function findFoldersByReference(client: ClientBase, reference: string) {
  const text = `select schema_id as "schemaId", id, firm_id as "firmId", name
     from grandlivre.folders where reference = $1 and erased_at is null order by id`
  return queryRows<{ schemaId: string; id: string; firmId: string; name: string }>(client, text, [reference])
}

export interface FolderTarget extends FolderKey {
  firmId: string
  name: string
  /** A SIRET or a SIREN. */
  siret: string | null
  currency: string
}

/** Locks the folder until the transaction ends, so that imports into one folder wait for each other. */
export async function lockFolder(client: ClientBase, id: string): Promise<FolderTarget | undefined> {
  const text = `select schema_id as "schemaId", id as "folderId", firm_id as "firmId", name, siret, currency
     from grandlivre.folders where id = $1 and erased_at is null for no key update`
  return queryRow<FolderTarget>(client, text, [id])
}

/**
 * Moves the folder to another firm of its tenant, with the folder's own tokens and subscriptions. Triggers tell both
 * firms (SQL function `publish_move`).
 */
export async function moveFolder(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  firmId: string,
): Promise<void> {
  const values = [schemaId, folderId, firmId]
  await client.query('update grandlivre.folders set firm_id = $3 where schema_id = $1 and id = $2', values)
  await client.query(
    'update grandlivre.tokens set firm_id = $3 where schema_id = $1 and folder_id = $2',
    values,
  )
  await client.query(
    `update grandlivre.subscriptions set firm_id = $3
     where level = 'api' and schema_id = $1 and folder_ids = array[$2::bigint]`,
    values,
  )
}

/** The exercices of a folder, earliest first. */
export async function exerciceIds(client: ClientBase, key: FolderKey): Promise<string[]> {
  const text =
    'select id from grandlivre.exercices where schema_id = $1 and folder_id = $2 order by start_date'
  return (await queryRows<{ id: string }>(client, text, [key.schemaId, key.folderId])).map((row) => row.id)
}

/**
 * The tables in the order of deletion, children first. Sections come before axes: an axis's default section is checked
 * only at commit.
 */
export const tablesOfLedger = [
  'movements',
  'entries',
  'exercices',
  'banks',
  'journals',
  'companies',
  'employees',
  'accounts',
  'payments',
  'vat_codes',
  'sections',
  'axes',
]

/** Deletes everything in a folder. The folder itself stays, with its id and its tokens. */
export async function deleteLedger(client: ClientBase, { schemaId, folderId }: FolderKey): Promise<void> {
  const key = [schemaId, folderId]
  for (const table of tablesOfLedger)
    await client.query(`delete from grandlivre.${table} where schema_id = $1 and folder_id = $2`, key)
}

/** Counts the rows of a folder's ledger. */
export async function countLedger(client: ClientBase, { schemaId, folderId }: FolderKey) {
  const hasRows = tablesOfLedger.map(
    (table) => `exists (select from grandlivre.${table} where schema_id = $1 and folder_id = $2)`,
  )
  const text = `select not (${hasRows.join(' or ')}) as "isEmpty",
            (select count(*) from grandlivre.accounts where schema_id = $1 and folder_id = $2)::integer as accounts,
            (select count(*) from grandlivre.entries where schema_id = $1 and folder_id = $2)::integer as entries,
            (select json_build_object('start', start_date, 'end', end_date) from grandlivre.exercices
             where schema_id = $1 and folder_id = $2 and closed_at is not null
             order by start_date limit 1) as closed`
  return (await queryRow<{
    /**
     * Whether the ledger has no row of any kind. A folder with journals and modes of payment is not empty, even if it has
     * no entries.
     */
    isEmpty: boolean
    accounts: number
    entries: number
    closed: Period | null
  }>(client, text, [schemaId, folderId]))!
}
