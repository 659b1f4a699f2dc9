/** What the console shows of folders, as the owner of the tables. */
import type { ClientBase, Pool } from 'pg'
import { utc } from '../../../db/literal.ts'

export interface ListedFolder {
  schemaId: string
  id: string
  firmId: string
  firmName: string
  name: string
  reference: string | null
  years: number
  /** Last day of the latest year, `YYYY-MM-DD`. */
  until: string | null
  ledgerVersion: string
}

export interface FolderSearch {
  /** An id, or a part of a name or reference in any case. */
  search?: string | undefined
  /** `<schema>.<folder>`: only folders after this one. */
  after?: string | undefined
  most?: number | undefined
}

/**
 * In the order of their ids. A search walks along the primary key until the page is full: for a text that no folder has,
 * through all of them, some 10 ms for 10,000.
 */
export async function listFolders(
  client: ClientBase | Pool,
  { search = '', after = '0.0', most }: FolderSearch,
): Promise<ListedFolder[]> {
  const { rows } = await client.query<ListedFolder>(
    `with page as materialized (
       select f.schema_id, f.id, f.firm_id, f.name, f.reference, f.ledger_version
       from grandlivre.folders f
       where (f.schema_id, f.id) > ($1::bigint, $2::bigint)
         and ($3 = '' or f.id::text = $3 or strpos(lower(f.name), lower($3)) > 0
           or strpos(lower(f.reference), lower($3)) > 0)
       order by f.schema_id, f.id limit $4
     )
     select p.schema_id as "schemaId", p.id, p.firm_id as "firmId", m.name as "firmName", p.name, p.reference,
       x.years, x.until, p.ledger_version as "ledgerVersion"
     from page p
     join grandlivre.firms m on m.schema_id = p.schema_id and m.id = p.firm_id
     cross join lateral (
       select count(*)::int as years, max(end_date)::text as until
       from grandlivre.exercices where schema_id = p.schema_id and folder_id = p.id) as x
     order by p.schema_id, p.id`,
    [...after.split('.'), search, most],
  )
  return rows
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
  /** The newest change in the log, and when it was made; null if the log has none. */
  loggedVersion: string | null
  loggedAt: string | null
  /** Entries that await validation, counted up to `draftsMax`. */
  drafts: number
}

/** Up to here drafts are counted. */
export const draftsMax = 1_000

/** Undefined if no tenant has this folder. @param id decimal digits within bigint */
export async function readFolder(client: ClientBase | Pool, id: string): Promise<FolderFacts | undefined> {
  const { rows } = await client.query<FolderFacts>(
    `select f.schema_id as "schemaId", s.name as "schemaName", f.id, f.firm_id as "firmId", m.name as "firmName", f.name,
       f.reference, f.siret, f.currency, ${utc('f.created_at')} as "createdAt",
       f.ledger_version as "ledgerVersion", c.version as "loggedVersion", ${utc('c.logged_at')} as "loggedAt", d.drafts
     from grandlivre.folders f
     join grandlivre.schemas s on s.schema_id = f.schema_id
     join grandlivre.firms m on m.schema_id = f.schema_id and m.id = f.firm_id
     left join lateral (
       select version, logged_at from grandlivre.ledger_changes
       where schema_id = f.schema_id and folder_id = f.id and kind <> 'forgotten'
       order by version desc limit 1) as c on true
     cross join lateral (
       select count(*)::int as drafts from (
         select from grandlivre.entries
         where schema_id = f.schema_id and folder_id = f.id and validated_at is null
         limit ${draftsMax} + 1) as counted) as d
     where f.id = $1`,
    [id],
  )
  return rows[0]
}

export interface YearFacts {
  id: string
  /** `YYYY-MM-DD` */
  startDate: string
  endDate: string
  /** ISO 8601, UTC. Null: open. */
  closedAt: string | null
  /** Counted up to `countedMax`; one more where there are more. */
  entries: number
  movements: number
  /** Movements of the first `countedMax` entries, for an estimate; null where fewer were counted. */
  sampled: number | null
  /** Validated movements at that version of the ledger, as the last complete stream found them; null if there was none. */
  streamed: string | null
  streamedVersion: string | null
}

/** Up to here entries and movements of a year are counted, by their primary keys: 1 ms each. */
export const countedMax = 10_000

/** Years of a folder that are shown. */
const yearsMax = 30

/** The latest years first. */
export async function readYears(
  client: ClientBase | Pool,
  { schemaId, id }: Pick<FolderFacts, 'schemaId' | 'id'>,
): Promise<YearFacts[]> {
  const { rows } = await client.query<YearFacts>(
    `select x.id, x.start_date::text as "startDate", x.end_date::text as "endDate", ${utc('x.closed_at')} as "closedAt",
       e.count as entries, m.count as movements, case when e.count > ${countedMax} then n.count end as sampled,
       b.rows as streamed, b.version as "streamedVersion"
     from (
       select * from grandlivre.exercices where schema_id = $1 and folder_id = $2
       order by end_date desc, id desc limit ${yearsMax}) as x
     cross join lateral (
       select count(*)::int as count, max(id) as last from (
         select id from grandlivre.entries
         where schema_id = x.schema_id and folder_id = x.folder_id and exercice_id = x.id
         order by id limit ${countedMax} + 1) as counted) as e
     cross join lateral (
       select count(*)::int as count from (
         select from grandlivre.movements
         where schema_id = x.schema_id and folder_id = x.folder_id and exercice_id = x.id
         limit ${countedMax} + 1) as counted) as m
     cross join lateral (
       select count(*)::int as count from (
         select from grandlivre.movements
         where e.count > ${countedMax} and schema_id = x.schema_id and folder_id = x.folder_id
           and exercice_id = x.id and entry_id <= e.last
         limit 20 * ${countedMax}) as counted) as n
     left join lateral (
       select k.version, (select sum(each)::text from unnest(k.rows) as each) as rows
       from grandlivre.movement_blocks k
       where k.schema_id = x.schema_id and k.folder_id = x.folder_id and k.exercice_id = x.id) as b on true
     order by x.end_date desc, x.id desc`,
    [schemaId, id],
  )
  return rows
}
