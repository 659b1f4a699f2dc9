/** Reads the firms and folders that staff see. Statements run as the owner of the tables. */
import { utc } from '../db/literal.ts'
import { type Connection, queryRow, queryRows } from '../db/statement.ts'

export interface ListedFolder {
  schemaId: string
  id: string
  firmId: string
  firmName: string
  name: string
  reference: string | null
  years: number
  /** The last day of the latest year, `YYYY-MM-DD`. */
  until: string | null
  /** The number of movements, counted up to `countedMax`; one more than that if there are more. */
  movements: number
  /** The time of the newest change in the log, ISO 8601, UTC. Null if the log has none, as it forgets old changes. */
  changedAt: string | null
  /** The number of tokens in use, for this folder alone or for its firm. */
  tokens: number
  /** The number of subscriptions that get events of the folder. */
  subscriptions: number
}

export interface FolderSearch {
  firm?: string | undefined
  /** An id, or a part of a name or reference, in upper or lower case. */
  search?: string | undefined
  /** `<schema>.<folder>`: only folders after this one. */
  after?: string | undefined
  most?: number | undefined
}

/** An SQL condition: whether the subscription `s` gets events of the folder `f`, whatever their kind. */
export const seesFolder = `coalesce(s.schema_id, f.schema_id) = f.schema_id
  and (s.folder_ids = '{}' or f.id = any (s.folder_ids)) and (s.level <> 'firm' or s.firm_id = f.firm_id)`

/** Of a year, at most this many entries and movements are counted. Each count takes 1 ms, along the primary key. */
export const countedMax = 10_000

/** An SQL expression: the number of rows that meet a condition, counted up to `most`. */
const counted = (table: string, condition: string, most: number) =>
  `(select count(*)::int as count from (select from grandlivre.${table} where ${condition} limit ${most}) as counted)`
/** An SQL condition: whether a row belongs to the exercice `x`. */
const ofYear = 'schema_id = x.schema_id and folder_id = x.folder_id and exercice_id = x.id'

/** Selects the time of the newest change in the log of the folder `f`; null if the log has none. */
const newestChange = `select logged_at from grandlivre.ledger_changes
  where schema_id = f.schema_id and folder_id = f.id and kind <> 'forgotten' order by version desc limit 1`

/**
 * Lists folders in the order of their ids. A search walks along the primary key until the page is full. For a text that
 * no folder has, it reads all folders, which takes some 10 ms for 10,000.
 */
export async function listFolders(
  client: Connection,
  { search = '', firm, after = '0.0', most }: FolderSearch,
): Promise<ListedFolder[]> {
  const text = `with page as materialized (
       select f.schema_id, f.id, f.firm_id, f.name, f.reference
       from grandlivre.folders f
       where (f.schema_id, f.id) > ($1::bigint, $2::bigint) and f.erased_at is null and ($5::bigint is null or f.firm_id = $5)
         and ($3 = '' or f.id::text = $3 or strpos(lower(f.name), lower($3)) > 0
           or strpos(lower(f.reference), lower($3)) > 0)
       order by f.schema_id, f.id limit $4
     )
     select f.schema_id as "schemaId", f.id, f.firm_id as "firmId", n.name as "firmName", f.name, f.reference,
       x.years, x.until, m.count as movements, ${utc('c.at')} as "changedAt", t.tokens, s.subscriptions
     from page f
     join grandlivre.firms n on n.schema_id = f.schema_id and n.id = f.firm_id
     cross join lateral (
       select count(*)::int as years, max(end_date)::text as until
       from grandlivre.exercices where schema_id = f.schema_id and folder_id = f.id) as x
     cross join lateral ${counted('movements', 'schema_id = f.schema_id and folder_id = f.id', countedMax + 1)} as m
     cross join lateral (
       select (${newestChange}) as at) as c
     cross join lateral (
       select count(*)::int as tokens from grandlivre.tokens
       where revoked_at is null and expires_at > now() and schema_id = f.schema_id
         and (folder_id = f.id or firm_id = f.firm_id and folder_id is null)) as t
     cross join lateral (select count(*)::int as subscriptions from grandlivre.subscriptions s where ${seesFolder}) as s
     order by f.schema_id, f.id`
  return queryRows<ListedFolder>(client, text, [...after.split('.'), search, most, firm])
}

export interface ListedFirm {
  schemaId: string
  schemaName: string
  id: string
  name: string
  siret: string | null
  folders: number
  /** The number of tokens in use: for the whole firm, and for single folders. */
  firmTokens: number
  folderTokens: number
  subscriptions: number
  /** The time of the newest change in the logs of the firm's folders. */
  changedAt: string | null
}

/** Lists firms in the order of their ids. */
export async function listFirms(
  client: Connection,
  { id, after = '0.0', most }: { id?: string; after?: string | undefined; most?: number | undefined },
): Promise<ListedFirm[]> {
  const text = `select p.schema_id as "schemaId", p.tenant as "schemaName", p.id, p.name, p.siret, f.folders,
       t.firm as "firmTokens", t.folder as "folderTokens", s.subscriptions, ${utc('f.at')} as "changedAt"
     from (
       select m.*, o.name as tenant from grandlivre.firms m join grandlivre.schemas o on o.schema_id = m.schema_id
       where (m.schema_id, m.id) > ($1::bigint, $2::bigint) and ($4::bigint is null or m.id = $4)
         and not exists (select from grandlivre.erasures where kind = 'firm' and id = m.id and ended_at is null)
       order by m.schema_id, m.id limit $3) as p
     cross join lateral (
       select count(*)::int as folders, max(c.at) as at from grandlivre.folders f cross join lateral (
         select (${newestChange}) as at) as c
       where f.schema_id = p.schema_id and f.firm_id = p.id and f.erased_at is null) as f
     cross join lateral (
       select count(*) filter (where folder_id is null)::int as firm, count(folder_id)::int as folder
       from grandlivre.tokens where revoked_at is null and expires_at > now() and schema_id = p.schema_id and firm_id = p.id) as t
     cross join lateral (
       select count(*)::int as subscriptions from grandlivre.subscriptions
       where schema_id = p.schema_id and firm_id = p.id) as s
     order by p.schema_id, p.id`
  return queryRows<ListedFirm>(client, text, [...after.split('.'), most, id])
}

export interface LastPull {
  partnerCode: string | null
  thirdPartyId: string
  tokenId: string | null
  /** ISO 8601, UTC. */
  at: string
  act: string
  rows: string | null
  bytes: string | null
}

/** `lastPulls` looks at this many of the newest audit rows of a folder. */
const pullsLookedThrough = 1_000

/** For each third party, the last pull of the folder that was sent completely; newest first. */
export async function lastPulls(client: Connection, folderId: string): Promise<LastPull[]> {
  const text = `select p.code as "partnerCode", r.third_party_id as "thirdPartyId", r.token_id as "tokenId",
       ${utc('r.at')} as at, r.act, r.rows, r.bytes
     from (
       select distinct on (third_party_id) * from (
         select * from grandlivre.audit_rows where folder_id = $1 order by number desc limit ${pullsLookedThrough}) as newest
       where outcome = 'sent' and third_party_id is not null and rows is not null
       order by third_party_id, number desc) as r
     left join grandlivre.third_parties p on p.id = r.third_party_id
     order by r.number desc`
  return queryRows<LastPull>(client, text, [folderId])
}

export interface FolderFacts {
  schemaId: string
  schemaName: string
  id: string
  firmId: string
  firmName: string
  name: string
  reference: string | null
  siret: string | null
  currency: string
  createdAt: string
  ledgerVersion: string
  /** The version and time of the newest change in the log; null if the log has none. */
  loggedVersion: string | null
  loggedAt: string | null
  /** The number of entries that await validation, counted up to `draftsMax`. */
  drafts: number
}

/** The most drafts that are counted. */
export const draftsMax = 1_000

/** Undefined if no tenant has this folder. @param id decimal digits within bigint */
export async function readFolderFacts(client: Connection, id: string): Promise<FolderFacts | undefined> {
  const text = `select f.schema_id as "schemaId", s.name as "schemaName", f.id, f.firm_id as "firmId", m.name as "firmName", f.name,
       f.reference, f.siret, f.currency, ${utc('f.created_at')} as "createdAt",
       f.ledger_version as "ledgerVersion", c.version as "loggedVersion", ${utc('c.logged_at')} as "loggedAt",
       d.count as drafts
     from grandlivre.folders f
     join grandlivre.schemas s on s.schema_id = f.schema_id
     join grandlivre.firms m on m.schema_id = f.schema_id and m.id = f.firm_id
     left join lateral (
       select version, logged_at from grandlivre.ledger_changes
       where schema_id = f.schema_id and folder_id = f.id and kind <> 'forgotten'
       order by version desc limit 1) as c on true
     cross join lateral ${counted(
       'entries',
       'schema_id = f.schema_id and folder_id = f.id and validated_at is null',
       draftsMax + 1,
     )} as d
     where f.id = $1 and f.erased_at is null`
  return queryRow<FolderFacts>(client, text, [id])
}

export interface YearFacts {
  id: string
  /** `YYYY-MM-DD` */
  startDate: string
  endDate: string
  /** ISO 8601, UTC; null if the year is open. */
  closedAt: string | null
  /** The numbers of entries and movements, counted up to `countedMax`; one more than that if there are more. */
  entries: number
  movements: number
  /**
   * The number of movements in the first `countedMax` entries, for an estimate. Null if the year has no more entries
   * than these.
   */
  sampled: number | null
  /**
   * The number of validated movements that the last complete stream sent, and the version of the ledger that it read;
   * null if there was no complete stream.
   */
  streamed: string | null
  streamedVersion: string | null
}

/** The most years of a folder that are shown. */
const yearsMax = 30

/** Reads the years, latest first. */
export async function readYears(
  client: Connection,
  { schemaId, id }: Pick<FolderFacts, 'schemaId' | 'id'>,
): Promise<YearFacts[]> {
  const text = `select x.id, x.start_date::text as "startDate", x.end_date::text as "endDate", ${utc('x.closed_at')} as "closedAt",
       e.count as entries, m.count as movements, case when e.count > ${countedMax} then n.count end as sampled,
       b.rows as streamed, b.version as "streamedVersion"
     from (
       select * from grandlivre.exercices where schema_id = $1 and folder_id = $2
       order by end_date desc, id desc limit ${yearsMax}) as x
     cross join lateral (
       select count(*)::int as count, max(id) as last from (
         select id from grandlivre.entries where ${ofYear} order by id limit ${countedMax} + 1) as counted) as e
     cross join lateral ${counted('movements', ofYear, countedMax + 1)} as m
     cross join lateral ${counted(
       'movements',
       `e.count > ${countedMax} and ${ofYear} and entry_id <= e.last`,
       20 * countedMax,
     )} as n
     left join lateral (
       select k.version, (select sum(each)::text from unnest(k.rows) as each) as rows
       from grandlivre.movement_blocks k
       where k.schema_id = x.schema_id and k.folder_id = x.folder_id and k.exercice_id = x.id) as b on true
     order by x.end_date desc, x.id desc`
  return queryRows<YearFacts>(client, text, [schemaId, id])
}
