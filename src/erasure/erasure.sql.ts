/**
 * Statements of erasure, run as the owner of the tables. Each changes a bounded number of rows, and can be
 * repeated without harm: the next run continues a run that was killed.
 */
import type { ClientBase } from 'pg'
import { utc } from '../db/literal.ts'
import { queryCount, queryRow, queryRows, queryValue } from '../db/statement.ts'
import type { FolderKey } from '../formats/rows.ts'

export type ErasedKind = 'folder' | 'firm' | 'partner'

export interface Erasure {
  kind: ErasedKind
  id: string
  /** When the erasure began: ISO 8601, UTC. */
  begunAt: string
  hasEnded: boolean
  /** The day until which backups may hold the data: `YYYY-MM-DD`. */
  backupsUntil: string | null
  gone: Record<string, number>
  /** Code of the erased third party. */
  code: string | null
  /** Tenant of the erased folder or firm. */
  schemaId: string | null
  /** Ids of the folder's exports: their files are stored under them. */
  exportIds: string[]
}

const erasures = {
  ofThing: 'kind = $1 and id = $2',
  ofCode: `kind = 'partner' and code = $1 order by begun_at desc`,
  /** Erasures of the folders that were erased with a firm. */
  ofFirm: `kind = 'folder' and of_firm = $1 order by id`,
  /** Erasures that have begun and not ended, the oldest first. */
  underWay: 'ended_at is null order by begun_at, kind, id',
}

export async function readErasures(
  client: ClientBase,
  which: keyof typeof erasures,
  values: string[] = [],
): Promise<Erasure[]> {
  const text = `select kind, id, ${utc('begun_at')} as "begunAt", gone, ended_at is not null as "hasEnded",
       backups_until::text as "backupsUntil", of_schema as "schemaId", code, export_ids as "exportIds"
     from grandlivre.erasures where ${erasures[which]}`
  return queryRows<Erasure>(client, text, values)
}

/** Finds the erasure of a folder, firm or third party; undefined if none was begun. */
export async function findErasure(client: ClientBase, kind: ErasedKind, id: string) {
  return (await readErasures(client, 'ofThing', [kind, id]))[0]
}

async function idsOf(client: ClientBase, text: string, values: unknown[]): Promise<string[]> {
  return (await queryRows<{ id: string }>(client, text, values)).map(({ id }) => id)
}

export async function beginErasure(
  client: ClientBase,
  kind: ErasedKind,
  id: string,
  of: { schemaId?: string; firmId?: string; code?: string; exportIds?: string[] },
): Promise<void> {
  // Each id is drawn once, but a restore may bring back what was erased.
  const text = `insert into grandlivre.erasures as e (kind, id, of_schema, of_firm, code, export_ids) values ($1, $2, $3, $4, $5, $6)
     on conflict (kind, id) do update set begun_at = now(), ended_at = null, gone = '{}',
       export_ids = array(select distinct unnest(e.export_ids || excluded.export_ids))`
  await client.query(text, [kind, id, of.schemaId, of.firmId, of.code, of.exportIds ?? []])
}

/** Counts the rows or files that were erased, in the transaction that erases them. */
export async function addGone(
  client: ClientBase,
  { kind, id }: Pick<Erasure, 'kind' | 'id'>,
  what: string,
  count: number,
): Promise<void> {
  if (count === 0) return
  const text = `update grandlivre.erasures set gone = (gone::jsonb || jsonb_build_object($3::text,
       coalesce((gone ->> $3)::bigint, 0) + $4))::json where kind = $1 and id = $2`
  await client.query(text, [kind, id, what, count])
}

/** @returns when the erasure first ended: ISO 8601, UTC */
export async function endErasure(
  client: ClientBase,
  { kind, id }: Pick<Erasure, 'kind' | 'id'>,
  backupsUntil?: string,
): Promise<{ endedAt: string; backupsUntil: string | null }> {
  const text = `update grandlivre.erasures set ended_at = coalesce(ended_at, now()), backups_until = coalesce($3, backups_until)
     where kind = $1 and id = $2 returning ${utc('ended_at')} as "endedAt", backups_until::text as "backupsUntil"`
  const values = [kind, id, backupsUntil]
  return (await queryRow<{ endedAt: string; backupsUntil: string | null }>(client, text, values))!
}

/** Locks a folder, whether it was erased or not. */
export async function lockForErasure(client: ClientBase, folderId: string) {
  const text = `select schema_id as "schemaId", id as "folderId", firm_id as "firmId", erased_at is not null as "isErased"
     from grandlivre.folders where id = $1 for update`
  return queryRow<FolderKey & { firmId: string; isErased: boolean }>(client, text, [folderId])
}

/**
 * Hides the folder. Once this is committed, no request sees it: requests that wait for it wake up (SQL function
 * `publish_ledger_change`), its tokens are refused, and its exports lose their claims.
 */
export async function markErased(client: ClientBase, { schemaId, folderId }: FolderKey): Promise<string[]> {
  const key = [schemaId, folderId]
  await client.query(
    `update grandlivre.folders set erased_at = now(), ledger_version = grandlivre.draw('grandlivre.ledger_versions')
     where schema_id = $1 and id = $2`,
    key,
  )
  await client.query(
    `update grandlivre.tokens set revoked_at = now() where schema_id = $1 and folder_id = $2 and revoked_at is null`,
    key,
  )
  await client.query(
    `update grandlivre.exports set state = 'failed', finished_at = clock_timestamp(), latest = false,
       reason = 'Its folder was erased'
     where schema_id = $1 and folder_id = $2 and state in ('queued', 'running')`,
    key,
  )
  return idsOf(client, 'select id from grandlivre.exports where schema_id = $1 and folder_id = $2', key)
}

/**
 * Stores the ids of all exports of the folder with its erasure. A request that saw the folder before it was hidden
 * may have inserted an export afterwards.
 * @returns their ids
 */
export async function noteExports(client: ClientBase, { schemaId, folderId }: FolderKey): Promise<string[]> {
  const text = `update grandlivre.erasures set export_ids = array(
       select unnest(export_ids) union select id from grandlivre.exports where schema_id = $1 and folder_id = $2)
     where kind = 'folder' and id = $2 returning export_ids as ids`
  return queryValue<string[]>(client, text, [schemaId, folderId])
}

/** @returns the number of files that exports of the folder named */
export function forgetFiles(client: ClientBase, { schemaId, folderId }: FolderKey): Promise<number> {
  const text =
    'update grandlivre.exports set file_key = null where schema_id = $1 and folder_id = $2 and file_key is not null'
  return queryCount(client, text, [schemaId, folderId])
}

/** Finds the ids of the subscriptions of a tenant, a firm or a third party, or of those for a single folder. */
export function subscriptionsWhere(
  client: ClientBase,
  column: 'schema_id' | 'firm_id' | 'third_party_id' | 'folder_ids',
  id: string,
): Promise<string[]> {
  const value = column === 'folder_ids' ? 'array[$1::bigint]' : '$1'
  return idsOf(client, `select id from grandlivre.subscriptions where ${column} = ${value} order by id`, [id])
}

export function deleteSubscription(client: ClientBase, id: string): Promise<number> {
  return queryCount(client, 'delete from grandlivre.subscriptions where id = $1', [id])
}

/** The place of an event in the index events_by_folder, whose columns are in this order. */
interface EventPlace {
  name: string
  id: string
}

/**
 * Removes the content of events of the folder. The events themselves stay until retention deletes them, because
 * numbers are counted along them.
 * @returns `last`: the place of the last event of this part; undefined if no event was left
 */
export async function emptyEvents(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  after: EventPlace,
  most: number,
): Promise<{ last: EventPlace | undefined; emptied: number }> {
  const text = `with page as materialized (
       select name, id from grandlivre.events
       where folder_id is not null and (schema_id, folder_id, name, id) > ($1::bigint, $2::bigint, $3, $4::bigint)
         and schema_id = $1 and folder_id = $2
       order by name, id limit $5
     ), emptied as (
       update grandlivre.events e set data = 'null', scope = json_build_object('schemaId', e.schema_id)
       from page p where e.schema_id = $1 and e.id = p.id and e.data::text <> 'null' returning e.id
     )
     select p.name, p.id, (select count(*) from emptied)::int as emptied from page p order by p.name desc, p.id desc limit 1`
  const values = [schemaId, folderId, after.name, after.id, most]
  const row = await queryRow<EventPlace & { emptied: number }>(client, text, values)
  return { last: row && { name: row.name, id: row.id }, emptied: row?.emptied ?? 0 }
}

export function kindsOfEvents(client: ClientBase, { schemaId, folderId }: FolderKey): Promise<string[]> {
  const text = 'select distinct name as id from grandlivre.events where schema_id = $1 and folder_id = $2'
  return idsOf(client, text, [schemaId, folderId])
}

/**
 * Locks the subscriptions that have something to send, before their deliveries are forgotten. So the result of an
 * attempt is recorded before or after that, never in between.
 */
export async function lockSubscriptionsOfSchema(client: ClientBase, schemaId: string): Promise<void> {
  const text = `select from grandlivre.subscriptions s
     where (s.schema_id is null or s.schema_id = $1)
       and exists (select from grandlivre.deliveries d where d.subscription_id = s.id and d.state = 'pending')
     order by s.id for no key update`
  await client.query(text, [schemaId])
}

/** Removes references between rows of the same table, so that rows can be deleted in batches. */
export async function unlinkLedger(client: ClientBase, { schemaId, folderId }: FolderKey): Promise<void> {
  const key = [schemaId, folderId]
  await client.query(
    `update grandlivre.accounts set counterpart_account_id = null, correspondance_account_id = null
     where schema_id = $1 and folder_id = $2 and num_nonnulls(counterpart_account_id, correspondance_account_id) > 0`,
    key,
  )
  await client.query(
    `update grandlivre.axes set default_section_id = null
     where schema_id = $1 and folder_id = $2 and default_section_id is not null`,
    key,
  )
}

/** Deletes at most `most` rows with these values. @returns the number of deleted rows; 0 if none is left */
export function deleteRows(
  client: ClientBase,
  table: string,
  values: Readonly<Record<string, string>>,
  most: number,
): Promise<number> {
  const condition = Object.keys(values).map((column, i) => `${column} = $${i + 1}`)
  // In the order of an index, so that a batch does not pass over the rows that earlier batches deleted.
  const order = table === 'deliveries' || table === 'events' ? 'order by id' : ''
  const text = `delete from grandlivre.${table} where ctid = any (array(
       select ctid from grandlivre.${table} where ${condition.join(' and ')} ${order} limit ${most}))`
  return queryCount(client, text, Object.values(values))
}

export async function deleteTokens(
  client: ClientBase,
  column: 'folder_id' | 'firm_id' | 'third_party_id',
  id: string,
): Promise<number> {
  const text = `delete from grandlivre.rate_windows w using grandlivre.tokens t
     where (w.schema_id, w.token_id) = (t.schema_id, t.id) and t.${column} = $1`
  await client.query(text, [id])
  return queryCount(client, `delete from grandlivre.tokens where ${column} = $1`, [id])
}

export async function deleteFolder(client: ClientBase, { schemaId, folderId }: FolderKey): Promise<void> {
  await client.query('delete from grandlivre.folders where schema_id = $1 and id = $2', [schemaId, folderId])
}

/** Counts the rows that still name the folder, by table. Tables without such rows are left out. */
export async function rowsOfFolder(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  tables: readonly string[],
): Promise<Record<string, number>> {
  const ofTables = tables.map(
    (table) =>
      `select '${table}' as name, count(*)::int as count from grandlivre.${table} where schema_id = $2 and folder_id = $1`,
  )
  const text = `${ofTables.join(' union all ')}
     union all select 'folders', count(*)::int from grandlivre.folders where id = $1
     union all select 'events with content', count(*)::int from grandlivre.events
       where schema_id = $2 and folder_id = $1 and data::text <> 'null'
     union all select 'subscriptions', count(*)::int from grandlivre.subscriptions where folder_ids = array[$1::bigint]`
  const rows = await queryRows<{ name: string; count: number }>(client, text, [folderId, schemaId])
  return Object.fromEntries(rows.filter(({ count }) => count > 0).map(({ name, count }) => [name, count]))
}

/** Counts the rows that stay: rows with ids but no content, and entries of ledgers that name the third party. */
export async function tracesOf(
  client: ClientBase,
  kind: ErasedKind,
  id: string,
): Promise<Record<string, unknown>> {
  const traces = {
    folder: `select array(select number from grandlivre.audit_rows
         where folder_id = $1 and act in ('folder delete', 'folder erased') order by number) as "auditRowsOfErasure",
       (select count(*)::int from grandlivre.audit_rows where folder_id = $1) as "auditRows",
       (select count(*)::int from grandlivre.events where folder_id = $1) as "emptiedEvents",
       (select count(*)::int from grandlivre.subscriptions where $1::bigint = any (folder_ids)) as "subscriptionsNamingIt"`,
    firm: `select (select count(*)::int from grandlivre.events where firm_id = $1) as "emptiedEvents"`,
    partner: `select (select count(*)::int from grandlivre.audit_rows where third_party_id = $1) as "auditRows",
       (select count(*)::int from grandlivre.entries where third_party_id = $1) as "entriesThatNameIt"`,
  }
  return (await queryRow<Record<string, unknown>>(client, traces[kind], [id]))!
}

/** Reads the keys of the files of the folder's exports. */
export async function filesOfFolder(client: ClientBase, folderId: string) {
  const text = `select schema_id as "schemaId", id as "exportId", file_key as "fileKey"
     from grandlivre.exports where folder_id = $1 and file_key is not null`
  return queryRows<{ schemaId: string; exportId: string; fileKey: string }>(client, text, [folderId])
}

export async function revokeTokensOfFirm(client: ClientBase, firmId: string): Promise<void> {
  const text =
    'update grandlivre.tokens set revoked_at = now() where firm_id = $1 and folder_id is null and revoked_at is null'
  await client.query(text, [firmId])
}

/** Locks a firm, even while it is being erased. */
export async function lockFirm(client: ClientBase, firmId: string) {
  const text = 'select schema_id as "schemaId" from grandlivre.firms where id = $1 for update'
  return queryRow<{ schemaId: string }>(client, text, [firmId])
}

export function foldersOfFirm(client: ClientBase, firmId: string): Promise<string[]> {
  return idsOf(client, 'select id from grandlivre.folders where firm_id = $1 order by id', [firmId])
}

/** Whether a tenant has no other firm. */
export async function isLastFirm(client: ClientBase, schemaId: string, firmId: string): Promise<boolean> {
  const text =
    'select not exists (select from grandlivre.firms where schema_id = $1 and id <> $2) as "isLast"'
  return queryValue<boolean>(client, text, [schemaId, firmId])
}

/** Deletes a firm. Events of the firm itself lose their content. @param isLast whether the tenant is deleted with it */
export async function deleteFirm(
  client: ClientBase,
  schemaId: string,
  firmId: string,
  isLast: boolean,
): Promise<void> {
  await client.query(
    `update grandlivre.events set data = 'null', scope = json_build_object('schemaId', schema_id)
     where schema_id = $1 and firm_id = $2 and data::text <> 'null'`,
    [schemaId, firmId],
  )
  await client.query('delete from grandlivre.firms where schema_id = $1 and id = $2', [schemaId, firmId])
  if (isLast) await client.query('delete from grandlivre.schemas where schema_id = $1', [schemaId])
}

/**
 * Deletes the third party with its secrets and limits. If ledgers name it as the origin of entries, its row stays, with
 * its code and name: the rows of ledgers are kept as they were filed. @returns how many entries name it
 */
export async function deleteThirdParty(client: ClientBase, thirdPartyId: string): Promise<number> {
  await client.query('delete from grandlivre.third_party_secrets where third_party_id = $1', [thirdPartyId])
  const text = 'select count(*)::int from grandlivre.entries where third_party_id = $1'
  const entries = await queryValue<number>(client, text, [thirdPartyId])
  if (entries === 0) await client.query('delete from grandlivre.third_parties where id = $1', [thirdPartyId])
  else await client.query('delete from grandlivre.partner_limits where third_party_id = $1', [thirdPartyId])
  return entries
}
