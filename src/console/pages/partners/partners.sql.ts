/** What the console shows of third parties and their tokens, as the owner of the tables. */
import type { ClientBase, Pool } from 'pg'
import { utc } from '../../../db/literal.ts'

/** Times are ISO 8601, UTC. */
export interface Partner {
  id: string
  code: string
  name: string
  kind: 'partner' | 'customer'
  createdAt: string
  /** Null while connected. */
  disconnectedAt: string | null
  disconnectedReason: string | null
}

const columns = `p.id, p.code, p.name, p.kind, ${utc('p.created_at')} as "createdAt",
  ${utc('p.disconnected_at')} as "disconnectedAt", p.disconnected_reason as "disconnectedReason"`

/** In the order of their codes. @param text a part of the code or name, in any case; empty: all */
export async function listPartners(
  client: ClientBase | Pool,
  { text, after, most }: { text: string; after: string; most: number },
): Promise<Partner[]> {
  const { rows } = await client.query<Partner>(
    `select ${columns} from grandlivre.third_parties p
     where p.code > $2 and ($1 = '' or strpos(p.code, upper($1)) > 0 or strpos(lower(p.name), lower($1)) > 0)
     order by p.code limit $3`,
    [text, after, most],
  )
  return rows
}

/** Undefined if no third party has this code. */
export async function readPartner(client: ClientBase | Pool, code: string): Promise<Partner | undefined> {
  const { rows } = await client.query<Partner>(
    `select ${columns} from grandlivre.third_parties p where p.code = $1`,
    [code],
  )
  return rows[0]
}

export interface KeptSecret {
  createdAt: string
  /** Until when requests may carry it. Null: the newest, which signs. */
  retiredAt: string | null
}

/** The secrets that requests may carry, newest first. */
export async function listSecrets(client: ClientBase | Pool, partnerId: string): Promise<KeptSecret[]> {
  const { rows } = await client.query<KeptSecret>(
    `select ${utc('created_at')} as "createdAt", ${utc('retired_at')} as "retiredAt"
     from grandlivre.third_party_secrets
     where third_party_id = $1 and (retired_at is null or retired_at > now())
     order by created_at desc limit 20`,
    [partnerId],
  )
  return rows
}

/** Times are ISO 8601, UTC. */
export interface PartnerToken {
  id: string
  thirdPartyId: string
  partnerCode: string
  level: 'api' | 'firm'
  schemaId: string
  firmId: string
  folderId: string | null
  /** Of the folder, or of the firm. */
  openedName: string
  /** Its last four characters. */
  hint: string
  createdAt: string
  activatedAt: string | null
  revokedAt: string | null
}

const tokenColumns = `t.id, t.third_party_id as "thirdPartyId", p.code as "partnerCode", t.level, t.schema_id as "schemaId", t.firm_id as "firmId",
  t.folder_id as "folderId", coalesce(f.name, m.name) as "openedName", t.hint, ${utc('t.created_at')} as "createdAt",
  ${utc('t.activated_at')} as "activatedAt", ${utc('t.revoked_at')} as "revokedAt"`

const opened = `join grandlivre.third_parties p on p.id = t.third_party_id
  join grandlivre.firms m on m.schema_id = t.schema_id and m.id = t.firm_id
  left join grandlivre.folders f on f.schema_id = t.schema_id and f.id = t.folder_id`

/** The newest first. @param before only tokens before that id */
export async function listTokensOf(
  client: ClientBase | Pool,
  { partnerId, before, most }: { partnerId: string; before: string | undefined; most: number },
): Promise<PartnerToken[]> {
  const { rows } = await client.query<PartnerToken>(
    `select ${tokenColumns}
     from (
       select * from grandlivre.tokens
       where third_party_id = $1 and ($2::bigint is null or id < $2) order by id desc limit $3) as t
     ${opened} order by t.id desc`,
    [partnerId, before, most],
  )
  return rows
}

/** Undefined if there is none. */
export async function readToken(client: ClientBase | Pool, id: string): Promise<PartnerToken | undefined> {
  const { rows } = await client.query<PartnerToken>(
    `select ${tokenColumns} from grandlivre.tokens t ${opened} where t.id = $1`,
    [id],
  )
  return rows[0]
}

/** Codes of third parties by their ids. */
export async function readCodes(
  client: ClientBase | Pool,
  ids: readonly string[],
): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const { rows } = await client.query<{ id: string; code: string }>(
    'select id, code from grandlivre.third_parties where id = any ($1)',
    [ids],
  )
  return new Map(rows.map(({ id, code }) => [id, code]))
}
