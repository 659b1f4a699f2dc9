/** Single statements of an import; rows by the thousand go through load.ts. */
import type { ClientBase } from 'pg'
import type { FolderKey } from '../../formats/rows.ts'

/** Makes imports of the same new ledger wait for each other, before there is a folder to lock. */
export async function lockReference(client: ClientBase, reference: string): Promise<void> {
  await client.query(`select pg_advisory_xact_lock(hashtextextended('import of ' || $1, 0))`, [reference])
}

/** The exercices of a folder that overlap this period, and whether they have entries. */
export async function findExercicesWithin(
  client: ClientBase,
  key: FolderKey,
  start: string,
  end: string,
): Promise<{ id: string; start: string; end: string; hasEntries: boolean; closed: boolean }[]> {
  const { rows } = await client.query(
    `select x.id, x.start_date::text as start, x.end_date::text as end, x.closed_at is not null as closed,
            exists (select from grandlivre.entries e where (e.schema_id, e.folder_id, e.exercice_id)
              = (x.schema_id, x.folder_id, x.id)) as "hasEntries"
     from grandlivre.exercices x
     where x.schema_id = $1 and x.folder_id = $2 and x.start_date <= $4 and x.end_date >= $3
     order by x.start_date`,
    [key.schemaId, key.folderId, start, end],
  )
  return rows
}

/** Movements first: the cascade would delete them entry by entry. */
export async function deleteEntriesOfExercice(
  client: ClientBase,
  key: FolderKey,
  exerciceId: string,
): Promise<void> {
  for (const table of ['movements', 'entries'])
    await client.query(
      `delete from grandlivre.${table} where schema_id = $1 and folder_id = $2 and exercice_id = $3`,
      [key.schemaId, key.folderId, exerciceId],
    )
}

async function idsBy(client: ClientBase, text: string, key: FolderKey): Promise<Map<string, string>> {
  const { rows } = await client.query<{ name: string; id: string }>(text, [key.schemaId, key.folderId])
  return new Map(rows.map((row) => [row.name, row.id]))
}

/** A folder's accounts by number. */
export async function accountsByNumber(
  client: ClientBase,
  key: FolderKey,
): Promise<Map<string, { id: string; name: string }>> {
  const { rows } = await client.query(
    `select number, id, name from grandlivre.accounts where schema_id = $1 and folder_id = $2`,
    [key.schemaId, key.folderId],
  )
  return new Map(rows.map(({ number, ...account }) => [number, account]))
}

/** Ids of a folder's journals by code. */
export function journalIds(client: ClientBase, key: FolderKey): Promise<Map<string, string>> {
  return idsBy(
    client,
    `select code as name, id from grandlivre.journals where schema_id = $1 and folder_id = $2`,
    key,
  )
}

/** Ids of a folder's payment modes by internal code; the oldest of several with one code. */
export function paymentIds(client: ClientBase, key: FolderKey): Promise<Map<string, string>> {
  return idsBy(
    client,
    `select code as name, min(id) as id from grandlivre.payments where schema_id = $1 and folder_id = $2
     group by code`,
    key,
  )
}

/** Updates the planner's statistics; otherwise it would take an exercice of a million entries for an empty one. */
export async function analyzeLedger(client: { query(text: string): Promise<unknown> }): Promise<void> {
  await client.query(
    `analyze grandlivre.entries, grandlivre.movements, grandlivre.accounts, grandlivre.companies,
       grandlivre.journals, grandlivre.events`,
  )
}
