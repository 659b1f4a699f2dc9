/** Token statements of the service, and of staff commands (as the owner of the tables). */
import type { ClientBase, Pool } from 'pg'
import { idLiteral, utc } from '../db/literal.ts'
import { askInTenant } from '../db/pool.ts'
import type { TokenGroup } from './callers.sql.ts'
import type { Level } from './secrets.ts'

/** @param folderId decimal digits, within bigint */
export async function isFolderOfFirm(
  database: Pool,
  { schemaId, firmId }: { schemaId: string; firmId: string },
  folderId: string,
): Promise<boolean> {
  const [schema, folder, firm] = [schemaId, folderId, firmId].map(idLiteral)
  const text = `select from folders where schema_id = ${schema} and id = ${folder} and firm_id = ${firm}`
  return (await askInTenant(database, schemaId, text)).length === 1
}

/** What a token opens: one folder, or all folders of a firm. */
export interface Opened {
  schemaId: string
  firmId: string
  folderId: string | null
}

/** Undefined if no tenant has this folder. */
export async function findFolder(client: ClientBase, folderId: string): Promise<Opened | undefined> {
  const { rows } = await client.query<Opened>(
    `select schema_id as "schemaId", firm_id as "firmId", id as "folderId" from grandlivre.folders where id = $1 and erased_at is null`,
    [folderId],
  )
  return rows[0]
}

/** Undefined if no tenant has this firm, or it is being erased. */
export async function findFirm(client: ClientBase, firmId: string): Promise<Opened | undefined> {
  const { rows } = await client.query<Opened>(
    `select schema_id as "schemaId", id as "firmId", null as "folderId" from grandlivre.firms f
     where id = $1 and not exists (select from grandlivre.erasures where kind = 'firm' and id = f.id and ended_at is null)`,
    [firmId],
  )
  return rows[0]
}

export interface NewToken {
  thirdPartyCode: string
  level: Level
  opened: Opened
  /** Null: all. */
  groups?: readonly TokenGroup[] | null
  /** Null: never. */
  expiresAt?: Date | null
}

/** @returns id of the token; undefined if no third party has this code */
export async function insertToken(
  client: ClientBase,
  token: NewToken & { hash: Buffer; hint: string },
): Promise<string | undefined> {
  const { opened } = token
  const { rows } = await client.query<{ id: string }>(
    `insert into grandlivre.tokens (schema_id, id, third_party_id, level, firm_id, folder_id, token_hash, hint, groups, expires_at)
     select $2, grandlivre.draw('grandlivre.ids'), id, $3, $4, $5, $6, $7, $8, coalesce($9::timestamptz, 'infinity') from grandlivre.third_parties where code = $1
     returning id`,
    [
      token.thirdPartyCode,
      opened.schemaId,
      token.level,
      opened.firmId,
      opened.folderId,
      token.hash,
      token.hint,
      token.groups,
      token.expiresAt,
    ],
  )
  return rows[0]?.id
}

export interface RevokedToken extends Opened {
  id: string
  /** Code of its third party. */
  code: string
}

/** Revokes one active token, or all of a third party. Returns the tokens it revoked. */
export async function revokeTokens(
  client: ClientBase,
  which: { tokenId: string } | { thirdPartyCode: string },
): Promise<RevokedToken[]> {
  const [condition, value] =
    'tokenId' in which ? ['t.id = $1', which.tokenId] : ['p.code = $1', which.thirdPartyCode]
  const { rows } = await client.query<RevokedToken>(
    `update grandlivre.tokens t set revoked_at = now() from grandlivre.third_parties p
     where p.id = t.third_party_id and t.revoked_at is null and ${condition}
     returning t.schema_id as "schemaId", t.id, t.firm_id as "firmId", t.folder_id as "folderId", p.code`,
    [value],
  )
  return rows
}

/** Whether a token in this schema was ever issued to the third party. */
export async function hasToken(client: ClientBase, thirdPartyId: string, schemaId: string): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(
    'select exists (select from grandlivre.tokens where third_party_id = $1 and schema_id = $2) as found',
    [thirdPartyId, schemaId],
  )
  return rows[0]!.found
}

/** Schemas in which the third party holds an active token, ascending. */
export async function schemasWithTokens(client: ClientBase, thirdPartyId: string): Promise<string[]> {
  const { rows } = await client.query<{ schema_id: string }>(
    `select distinct schema_id from grandlivre.tokens where third_party_id = $1 and revoked_at is null and expires_at > now()
     order by schema_id`,
    [thirdPartyId],
  )
  return rows.map((row) => row.schema_id)
}

/** Seconds until the next token ends; undefined: none that is in use has an end. Inside `whileDelivering`. */
export async function readNextEnd(client: ClientBase): Promise<number | undefined> {
  const { rows } = await client.query<{ seconds: number | null }>(
    `select extract(epoch from min(expires_at) - now())::float8 as seconds from tokens
     where revoked_at is null and expires_at > now() and expires_at < 'infinity'`,
  )
  return rows[0]!.seconds ?? undefined
}

/** Times are ISO 8601, UTC. */
export interface ListedToken extends Opened {
  id: string
  thirdPartyId: string
  partnerCode: string
  level: Level
  /** Of the folder, or of the firm. */
  openedName: string
  /** The token's last four characters. */
  hint: string
  createdAt: string
  activatedAt: string | null
  revokedAt: string | null
  /** Null: all. */
  groups: TokenGroup[] | null
  /** Null: never. */
  expiresAt: string | null
  isExpired: boolean
  /** Within 14 days, and it is in use until then. */
  endsSoon: boolean
  /** Whether its third party is disconnected. */
  isDisconnected: boolean
}

const endsSoon = `t.revoked_at is null and t.expires_at > now() and t.expires_at <= now() + interval '14 days'`

const listedColumns = `t.id, t.third_party_id as "thirdPartyId", p.code as "partnerCode", t.level,
  t.schema_id as "schemaId", t.firm_id as "firmId", t.folder_id as "folderId",
  coalesce(f.name, m.name) as "openedName", t.hint, ${utc('t.created_at')} as "createdAt",
  ${utc('t.activated_at')} as "activatedAt", ${utc('t.revoked_at')} as "revokedAt",
  t.groups, ${utc("nullif(t.expires_at, 'infinity')")} as "expiresAt", t.expires_at <= now() as "isExpired",
  ${endsSoon} as "endsSoon",
  p.disconnected_at is not null as "isDisconnected"`

const openedBy = `join grandlivre.third_parties p on p.id = t.third_party_id
  join grandlivre.firms m on m.schema_id = t.schema_id and m.id = t.firm_id
  left join grandlivre.folders f on f.schema_id = t.schema_id and f.id = t.folder_id`

export interface TokenFilter {
  thirdPartyId?: string | undefined
  /** Only tokens that open this folder and have not ended. */
  opens?: Opened | undefined
  /** Only tokens that are in use and end within 14 days. */
  endSoon?: boolean
  /** Only tokens older than the one with that id. */
  after?: string | undefined
  most?: number | undefined
}

/** Of all tenants, the newest first. */
export async function listTokens(
  client: ClientBase | Pool,
  { thirdPartyId, opens, endSoon = false, after, most }: TokenFilter,
): Promise<ListedToken[]> {
  const { rows } = await client.query<ListedToken>(
    `select ${listedColumns}
     from (
       select * from grandlivre.tokens t
       where ($1::bigint is null or third_party_id = $1) and ($2::bigint is null or id < $2)
         and ($4::bigint is null or revoked_at is null and expires_at > now() and schema_id = $4 and firm_id = $5
           and (folder_id = $6 or folder_id is null))
         and (not $7 or ${endsSoon})
       order by id desc limit $3) as t
     ${openedBy} order by t.id desc`,
    [thirdPartyId, after, most, opens?.schemaId, opens?.firmId, opens?.folderId, endSoon],
  )
  return rows
}

/** Undefined if there is none. */
export async function readToken(client: ClientBase | Pool, id: string): Promise<ListedToken | undefined> {
  const { rows } = await client.query<ListedToken>(
    `select ${listedColumns} from grandlivre.tokens t ${openedBy} where t.id = $1`,
    [id],
  )
  return rows[0]
}
