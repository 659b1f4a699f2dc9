/** Single statements of an import. load.ts loads rows by the thousand. */
import type { ClientBase, QueryResultRow } from 'pg'
import { queryRows } from '../../db/statement.ts'
import { columnName } from '../../formats/items/table.ts'
import type { FolderKey, Period } from '../../formats/rows.ts'
import type { KnownAccount } from './survey/accounts.ts'

/** Makes imports of the same new ledger wait for each other, as there is no folder yet to lock. */
export async function lockReference(client: ClientBase, reference: string): Promise<void> {
  await client.query(`select pg_advisory_xact_lock(hashtextextended('import of ' || $1, 0))`, [reference])
}

/** Finds the exercices of a folder that overlap this period, and tells whether they have entries. */
export async function findExercicesWithin(client: ClientBase, key: FolderKey, start: string, end: string) {
  const text = `select x.id, x.start_date::text as start, x.end_date::text as end, x.closed_at is not null as closed,
            exists (select from grandlivre.entries e where (e.schema_id, e.folder_id, e.exercice_id)
              = (x.schema_id, x.folder_id, x.id)) as "hasEntries"
     from grandlivre.exercices x
     where x.schema_id = $1 and x.folder_id = $2 and x.start_date <= $4 and x.end_date >= $3
     order by x.start_date`
  const values = [key.schemaId, key.folderId, start, end]
  return queryRows<Period & { id: string; hasEntries: boolean; closed: boolean }>(client, text, values)
}

/** Reads columns of a folder's rows, oldest first. */
function rowsOf<Row extends QueryResultRow>(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  table: 'accounts' | 'journals' | 'payments',
  members: (keyof Row & string)[],
): Promise<Row[]> {
  const columns = members.map((member) => `${columnName(member)} as "${member}"`)
  const text = `select ${columns.join(', ')} from grandlivre.${table} where schema_id = $1 and folder_id = $2 order by id`
  return queryRows<Row>(client, text, [schemaId, folderId])
}

export function knownAccounts(client: ClientBase, key: FolderKey): Promise<KnownAccount[]> {
  const filed = ['filedNumber', 'filedName', 'auxiliaryNumber', 'auxiliaryName'] as const
  return rowsOf<KnownAccount>(client, key, 'accounts', ['id', 'number', 'name', ...filed])
}

/** The journals of a folder by code, each with the label that a FEC gave it. */
export async function knownJournals(client: ClientBase, key: FolderKey) {
  type Known = { code: string; id: string; filedName: string | null }
  const rows = await rowsOf<Known>(client, key, 'journals', ['code', 'id', 'filedName'])
  return new Map(rows.map((row) => [row.code, row]))
}

/** The ids of a folder's payment modes by internal code. If several modes have the same code, the oldest counts. */
export async function paymentIds(client: ClientBase, key: FolderKey): Promise<Map<string, string>> {
  const rows = await rowsOf<{ code: string; id: string }>(client, key, 'payments', ['code', 'id'])
  return new Map(rows.toReversed().map(({ code, id }) => [code, id]))
}

/** Stores the fields that a FEC filed for accounts or journals of the folder. */
export async function fileRows(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  table: 'accounts' | 'journals',
  filed: { id: string }[],
): Promise<void> {
  const [first] = filed
  if (first === undefined) return
  const columns = Object.keys(first).map(columnName)
  const rows = filed.map((row) =>
    Object.fromEntries(Object.values(row).map((value, i) => [columns[i], value])),
  )
  const text = `update grandlivre.${table} t set ${columns.map((column) => `${column} = f.${column}`).join(', ')}
     from json_populate_recordset(null::grandlivre.${table}, $3) f
     where t.schema_id = $1 and t.folder_id = $2 and t.id = f.id`
  await client.query(text, [schemaId, folderId, JSON.stringify(rows)])
}

/** Stores the further columns of an imported file, and whether it is scattered. Writes nothing if both are stored. */
export async function fileExercice(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  exerciceId: string,
  filed: { columns: readonly string[]; isScattered: boolean },
): Promise<void> {
  const text = `update grandlivre.exercices set filed_columns = $4, scattered = $5
     where schema_id = $1 and folder_id = $2 and id = $3
       and (filed_columns, scattered) is distinct from ($4::text[], $5::boolean)`
  await client.query(text, [schemaId, folderId, exerciceId, filed.columns, filed.isScattered])
}

/** The exercices of a folder with a FEC that an earlier version imported, oldest first. */
export async function findEarlierImports(client: ClientBase, { schemaId, folderId }: FolderKey) {
  const text = `select x.start_date::text as start, x.end_date::text as end from grandlivre.exercices x
     where x.schema_id = $1 and x.folder_id = $2 and x.filed_columns is null and exists (
       select from grandlivre.entries e
       where (e.schema_id, e.folder_id, e.exercice_id) = (x.schema_id, x.folder_id, x.id)
         and e.source = 'FEC' and e.number is null and e.validated_at is not null)
     order by x.start_date`
  return queryRows<Period>(client, text, [schemaId, folderId])
}
