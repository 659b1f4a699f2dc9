import type { ClientBase } from 'pg'
import pg from 'pg'
import { IdSource } from '../../src/ledger/ids.ts'
import { createFolder } from '../../src/ledger/tenants.sql.ts'
import type { YearOfFolder } from '../dataset.ts'

export interface SmallFolder {
  folderId: string
  exerciceId: string
}

/** Folders of the firm of another one, each with a year that has one entry of two movements. */
export async function createFolders(
  ownerUrl: string,
  { schemaId, folderId }: YearOfFolder,
  count: number,
): Promise<SmallFolder[]> {
  const client = new pg.Client(ownerUrl)
  await client.connect()
  try {
    await client.query('begin')
    const { rows } = await client.query<{ firmId: string }>(
      `select firm_id as "firmId" from grandlivre.folders where id = $1`,
      [folderId],
    )
    const ids = new IdSource(client)
    await ids.reserve(count)
    const made: string[] = []
    for (let place = 1; place <= count; place++) {
      const id = ids.next()
      await createFolder(client, { schemaId, id, firmId: rows[0]!.firmId, name: `Folder ${place}` })
      made.push(id)
    }
    const folders = await fillFolders(client, schemaId, made)
    await client.query('commit')
    return folders
  } finally {
    await client.end()
  }
}

/** Ids are unique per kind and folder. */
async function fillFolders(
  client: ClientBase,
  schemaId: string,
  folderIds: string[],
): Promise<SmallFolder[]> {
  const into = (table: string, columns: string, values: string) =>
    client.query(
      `insert into grandlivre.${table} (schema_id, folder_id, ${columns})
       select $1, folder, ${values} from unnest($2::bigint[]) as folder`,
      [schemaId, folderIds],
    )
  await into('exercices', 'id, start_date, end_date', `folder + 1, '2026-01-01', '2026-12-31'`)
  await into('journals', 'id, code, name, type', `folder + 2, 'OD', 'Opérations diverses', 'OD'`)
  await into('accounts', 'id, number, name', `folder + 3, '512000', 'Banque'`)
  await into(
    'entries',
    'id, exercice_id, journal_id, date, accounted_at, created_at, validated_at, source, currency',
    `folder + 4, folder + 1, folder + 2, '2026-03-01', '2026-03-01', now(), '2026-03-01', 'API', 'EUR'`,
  )
  for (const [id, debit, credit] of [
    [5, 100, 0],
    [6, 0, 100],
  ])
    await into(
      'movements',
      'exercice_id, entry_id, id, account_id, description, invoice_number, debit, credit',
      `folder + 1, folder + 4, folder + ${id}, folder + 3, 'Virement', '', ${debit}, ${credit}`,
    )
  return folderIds.map((folderId) => ({ folderId, exerciceId: String(BigInt(folderId) + 1n) }))
}

/** One commit that changes each entry of the folder, of which there is one. */
export async function editFolder(
  client: ClientBase,
  { schemaId, folderId }: { schemaId: string; folderId: string },
  edit: number,
): Promise<void> {
  await client.query(
    `update grandlivre.entries set comment = 'Correction ' || $3::text where schema_id = $1 and folder_id = $2`,
    [schemaId, folderId, edit],
  )
}

export interface Connections {
  /** Of the service. */
  open: number
  /** In a query or a transaction. */
  busy: number
}

/** Of all sessions but this one. */
export async function countConnections(client: ClientBase): Promise<Connections> {
  const { rows } = await client.query<Connections>(
    `select count(*)::integer as open, (count(*) filter (where state <> 'idle'))::integer as busy
     from pg_stat_activity
     where backend_type = 'client backend' and pid <> pg_backend_pid()`,
  )
  return rows[0]!
}
