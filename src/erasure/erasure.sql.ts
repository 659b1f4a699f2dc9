/**
 * Statements of erasure, as the owner of the tables, each of a bounded number of rows. All repeat without harm: a run that
 * was killed leaves what the next one goes on with.
 */
import type { ClientBase } from 'pg'
import { utc } from '../db/literal.ts'
import type { FolderKey } from '../formats/rows.ts'

export type ErasedKind = 'folder' | 'firm' | 'partner'

export interface Erasure {
  kind: ErasedKind
  id: string
  /** ISO 8601, UTC. */
  begunAt: string
  gone: Record<string, number>
  /** Tenant of the folder or firm. */
  schemaId: string | null
  /** Exports of the folder, by which its files lie in the store. */
  exportIds: string[]
}

/** Undefined if the erasure of this was never begun. */
export async function findErasure(client: ClientBase, kind: ErasedKind, id: string) {
  const { rows } = await client.query<Erasure>(
    `select kind, id, ${utc('begun_at')} as "begunAt", gone,
       of_schema as "schemaId", export_ids as "exportIds"
     from grandlivre.erasures where kind = $1 and id = $2`,
    [kind, id],
  )
  return rows[0]
}

export async function beginErasure(
  client: ClientBase,
  kind: ErasedKind,
  id: string,
  { schemaId, exportIds = [] }: { schemaId?: string; exportIds?: string[] } = {},
): Promise<void> {
  await client.query(
    `insert into grandlivre.erasures (kind, id, of_schema, export_ids) values ($1, $2, $3, $4) on conflict do nothing`,
    [kind, id, schemaId, exportIds],
  )
}

/** Counts what went, in the transaction in which it goes. */
export async function addGone(
  client: ClientBase,
  { kind, id }: Pick<Erasure, 'kind' | 'id'>,
  what: string,
  count: number,
): Promise<void> {
  if (count === 0) return
  await client.query(
    `update grandlivre.erasures set gone = (gone::jsonb || jsonb_build_object($3::text,
       coalesce((gone ->> $3)::bigint, 0) + $4))::json where kind = $1 and id = $2`,
    [kind, id, what, count],
  )
}

/** @returns when it ended first: ISO 8601, UTC */
export async function endErasure(
  client: ClientBase,
  { kind, id }: Pick<Erasure, 'kind' | 'id'>,
): Promise<string> {
  const { rows } = await client.query<{ endedAt: string }>(
    `update grandlivre.erasures set ended_at = coalesce(ended_at, now()) where kind = $1 and id = $2
     returning ${utc('ended_at')} as "endedAt"`,
    [kind, id],
  )
  return rows[0]!.endedAt
}

/** A folder, erased or not. */
export async function lockForErasure(client: ClientBase, folderId: string) {
  const { rows } = await client.query<FolderKey & { firmId: string; isErased: boolean }>(
    `select schema_id as "schemaId", id as "folderId", firm_id as "firmId", erased_at is not null as "isErased"
     from grandlivre.folders where id = $1 for update`,
    [folderId],
  )
  return rows[0]
}

/**
 * From the commit on, no request sees the folder. Whoever waits for it is woken (SQL function `publish_ledger_change`), its
 * tokens are refused, and its exports lose their claims.
 */
export async function hideFolder(client: ClientBase, { schemaId, folderId }: FolderKey): Promise<string[]> {
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
  const { rows } = await client.query<{ id: string }>(
    'select id from grandlivre.exports where schema_id = $1 and folder_id = $2',
    key,
  )
  return rows.map(({ id }) => id)
}

/** Subscriptions that could hear of nothing but this folder. */
export async function subscriptionsOfFolder(client: ClientBase, { schemaId, folderId }: FolderKey) {
  const { rows } = await client.query<{ id: string }>(
    `select id from grandlivre.subscriptions where schema_id = $1 and folder_ids = array[$2::bigint]`,
    [schemaId, folderId],
  )
  return rows.map(({ id }) => id)
}

/** Deliveries of a subscription, with their attempts. @returns how many went; 0: none is left */
export async function deleteDeliveriesOf(
  client: ClientBase,
  subscriptionId: string,
  most: number,
): Promise<number> {
  const { rowCount } = await client.query(
    `delete from grandlivre.deliveries where ctid = any (array(
       select ctid from grandlivre.deliveries where subscription_id = $1 order by id limit $2))`,
    [subscriptionId, most],
  )
  return rowCount ?? 0
}

export async function deleteSubscription(client: ClientBase, subscriptionId: string): Promise<number> {
  const { rowCount } = await client.query('delete from grandlivre.subscriptions where id = $1', [
    subscriptionId,
  ])
  return rowCount ?? 0
}

/** In the order of the index events_by_folder. */
export interface EventPlace {
  name: string
  id: string
}

/**
 * Takes from events of the folder all that they say. They stay, since numbers are counted along them, until retention
 * deletes them. @returns the last one; undefined after the last
 */
export async function emptyEvents(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  after: EventPlace,
  most: number,
): Promise<{ last: EventPlace | undefined; emptied: number }> {
  const { rows } = await client.query<EventPlace & { emptied: number }>(
    `with page as materialized (
       select name, id from grandlivre.events
       where folder_id is not null and (schema_id, folder_id, name, id) > ($1::bigint, $2::bigint, $3, $4::bigint)
         and schema_id = $1 and folder_id = $2
       order by name, id limit $5
     ), emptied as (
       update grandlivre.events e set data = 'null', scope = json_build_object('schemaId', e.schema_id)
       from page p where e.schema_id = $1 and e.id = p.id and e.data::text <> 'null' returning e.id
     )
     select p.name, p.id, (select count(*) from emptied)::int as emptied from page p order by p.name desc, p.id desc limit 1`,
    [schemaId, folderId, after.name, after.id, most],
  )
  const [row] = rows
  return { last: row && { name: row.name, id: row.id }, emptied: row?.emptied ?? 0 }
}

export async function kindsOfEvents(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    'select distinct name from grandlivre.events where schema_id = $1 and folder_id = $2',
    [schemaId, folderId],
  )
  return rows.map(({ name }) => name)
}

/**
 * Among the next deliveries of the schema, those with an event of the folder: what waits is forgotten, so that the numbers
 * go out again without its events; what failed goes, and can be replayed by number; of what was delivered, the answers
 * of receivers go. @returns the last delivery looked at; undefined after the last
 */
export async function forgetDeliveries(
  client: ClientBase,
  { schemaId, folderId }: FolderKey,
  kinds: string[],
  after: string,
  most: number,
): Promise<{ last: string | undefined; forgotten: number; answers: number }> {
  const { rows } = await client.query<{ last: string | null; forgotten: number; answers: number }>(
    `with page as materialized (
       select d.schema_id, d.id, d.subscription_id, d.state, d.is_replay, d.first_sequence, d.first_event, d.last_event
       from grandlivre.deliveries d where d.schema_id = $1 and d.id > $4::bigint order by d.id limit $5
     ), touched as materialized (
       select p.* from page p join grandlivre.subscriptions s on s.id = p.subscription_id
       where exists (select from unnest($3::text[]) as kind cross join lateral (
         select from grandlivre.events e
         where (e.schema_id, e.folder_id, e.name) = ($1, $2, kind) and e.folder_id is not null
           and e.id between p.first_event and p.last_event limit 1) as hit
         where grandlivre.selects(s.on_events, s.folder_ids, kind, $2))
     ), again as (
       update grandlivre.subscriptions s set collected = t.first_sequence - 1
       from touched t where s.id = t.subscription_id and t.state = 'pending' and not t.is_replay
         and t.first_sequence is not null and s.collected >= t.first_sequence
       returning s.id
     ), forgotten as (
       delete from grandlivre.deliveries d using touched t
       where d.schema_id = $1 and d.id = t.id and d.state = t.state and t.state <> 'delivered' returning d.id
     ), answers as (
       update grandlivre.delivery_attempts a set answer = null
       from touched t where a.schema_id = $1 and a.delivery_id = t.id and t.state = 'delivered' and a.answer is not null
       returning 1
     )
     select (select max(id) from page) as last, (select count(*) from forgotten)::int as forgotten,
       (select count(*) from answers)::int as answers, (select count(*) from again) as again`,
    [schemaId, folderId, kinds, after, most],
  )
  const { last, ...counts } = rows[0]!
  return { last: last ?? undefined, ...counts }
}

/** Locks the subscriptions that have something to send, before `forgetDeliveries`: a delivery in flight comes first. */
export async function lockSubscriptionsOfSchema(client: ClientBase, schemaId: string): Promise<void> {
  await client.query(
    `select from grandlivre.subscriptions s
     where (s.schema_id is null or s.schema_id = $1)
       and exists (select from grandlivre.deliveries d where d.subscription_id = s.id and d.state = 'pending')
     order by s.id for no key update`,
    [schemaId],
  )
}

/** What refers to rows of its own table, so that batches of rows can go. */
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

/** @param table one of the tables with `folder_id`. @returns how many went; 0: none is left */
export async function deleteRows(
  client: ClientBase,
  table: string,
  { schemaId, folderId }: FolderKey,
  most: number,
): Promise<number> {
  const { rowCount } = await client.query(
    `delete from grandlivre.${table} where ctid = any (array(
       select ctid from grandlivre.${table} where schema_id = $1 and folder_id = $2 limit $3))`,
    [schemaId, folderId, most],
  )
  return rowCount ?? 0
}

export async function deleteTokens(
  client: ClientBase,
  condition: 'folder_id' | 'firm_id' | 'third_party_id',
  id: string,
): Promise<number> {
  await client.query(
    `delete from grandlivre.rate_windows w using grandlivre.tokens t
     where (w.schema_id, w.token_id) = (t.schema_id, t.id) and t.${condition} = $1`,
    [id],
  )
  const { rowCount } = await client.query(`delete from grandlivre.tokens where ${condition} = $1`, [id])
  return rowCount ?? 0
}

export async function deleteFolder(client: ClientBase, { schemaId, folderId }: FolderKey): Promise<void> {
  await client.query('delete from grandlivre.folders where schema_id = $1 and id = $2', [schemaId, folderId])
}

/** Rows that still name the folder, by table: the receipt says why they stay. */
export async function rowsOfFolder(
  client: ClientBase,
  folderId: string,
  tables: readonly string[],
): Promise<Record<string, number>> {
  const { rows } = await client.query<{ name: string; count: number }>(
    `${tables
      .map(
        (table) =>
          `select '${table}' as name, count(*)::int as count from grandlivre.${table} where folder_id = $1`,
      )
      .join(' union all ')}
     union all select 'folders', count(*)::int from grandlivre.folders where id = $1
     union all select 'events with content', count(*)::int from grandlivre.events
       where folder_id = $1 and data::text <> 'null'
     union all select 'subscriptions', count(*)::int from grandlivre.subscriptions where folder_ids = array[$1::bigint]`,
    [folderId],
  )
  return Object.fromEntries(rows.filter(({ count }) => count > 0).map(({ name, count }) => [name, count]))
}

/** What stays: ids without content, and where ledgers name a third party. */
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
  const { rows } = await client.query<Record<string, unknown>>(traces[kind], [id])
  return rows[0]!
}

export async function revokeTokensOfFirm(client: ClientBase, firmId: string): Promise<void> {
  await client.query(
    'update grandlivre.tokens set revoked_at = now() where firm_id = $1 and folder_id is null and revoked_at is null',
    [firmId],
  )
}

export async function foldersOfFirm(client: ClientBase, firmId: string): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    'select id from grandlivre.folders where firm_id = $1 order by id',
    [firmId],
  )
  return rows.map(({ id }) => id)
}

export async function subscriptionsWhere(
  client: ClientBase,
  column: 'firm_id' | 'third_party_id',
  id: string,
): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `select id from grandlivre.subscriptions where ${column} = $1 order by id`,
    [id],
  )
  return rows.map((row) => row.id)
}

/** The firm, its events' content, and its tenant where it was the last of it. @returns whether the tenant went, too */
export async function deleteFirm(client: ClientBase, schemaId: string, firmId: string): Promise<boolean> {
  await client.query(
    `update grandlivre.events set data = 'null', scope = json_build_object('schemaId', schema_id)
     where schema_id = $1 and firm_id = $2 and data::text <> 'null'`,
    [schemaId, firmId],
  )
  await client.query('delete from grandlivre.firms where schema_id = $1 and id = $2', [schemaId, firmId])
  const { rows } = await client.query<{ isLast: boolean }>(
    'select not exists (select from grandlivre.firms where schema_id = $1) as "isLast"',
    [schemaId],
  )
  if (!rows[0]!.isLast) return false
  await client.query('delete from grandlivre.events where schema_id = $1', [schemaId])
  await client.query('delete from grandlivre.schemas where schema_id = $1', [schemaId])
  return true
}

/**
 * The third party with its secrets and limits. Where ledgers name it as the origin of entries, its row stays, with its code
 * alone: their rows are kept as they were filed. @returns how many entries name it
 */
export async function deleteThirdParty(client: ClientBase, thirdPartyId: string): Promise<number> {
  await client.query('delete from grandlivre.third_party_secrets where third_party_id = $1', [thirdPartyId])
  const { rows } = await client.query<{ entries: number }>(
    'select count(*)::int as entries from grandlivre.entries where third_party_id = $1',
    [thirdPartyId],
  )
  if (rows[0]!.entries === 0)
    await client.query('delete from grandlivre.third_parties where id = $1', [thirdPartyId])
  else await client.query('delete from grandlivre.partner_limits where third_party_id = $1', [thirdPartyId])
  return rows[0]!.entries
}
