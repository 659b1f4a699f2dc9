/**
 * Tokens: staff issue and revoke them, with their events. Runs as the owner of the tables. (The SQL function `admit`
 * publishes the first use of a token.)
 */
import type { ClientBase } from 'pg'
import { utc } from '../db/literal.ts'
import { type Connection, queryRow, queryRows, queryValue } from '../db/statement.ts'
import type { NewEvent } from '../events/events.sql.ts'
import { publish } from '../events/publish.ts'
import type { TokenGroup } from './callers.sql.ts'
import { type Level, makeToken, sha256 } from './secrets.ts'
import { lockThirdParty } from './third-parties.sql.ts'

/** What a token opens: one folder, or all folders of a firm. */
export interface Opened {
  schemaId: string
  firmId: string
  folderId: string | null
}

/** Returns undefined if no tenant has this folder. */
export function findFolder(client: ClientBase, folderId: string) {
  const text = `select schema_id as "schemaId", firm_id as "firmId", id as "folderId" from grandlivre.folders
     where id = $1 and erased_at is null`
  return queryRow<Opened>(client, text, [folderId])
}

/** Returns undefined if no tenant has this firm, or if the firm is being erased. */
export function findFirm(client: ClientBase, firmId: string) {
  const text = `select schema_id as "schemaId", id as "firmId", null as "folderId" from grandlivre.firms f
     where id = $1 and not exists (select from grandlivre.erasures where kind = 'firm' and id = f.id and ended_at is null)`
  return queryRow<Opened>(client, text, [firmId])
}

export interface NewToken {
  thirdPartyCode: string
  level: Level
  /** `folderId` is null for a firm token. */
  opened: Opened
  /** The groups of routes for which it is issued; null for all. */
  groups?: readonly TokenGroup[] | null
  /** Null if it never expires. */
  expiresAt?: Date | null
}

/** @returns the token, which is not stored anywhere; undefined if no third party has this code */
export async function issueToken(
  client: ClientBase,
  issued: NewToken,
): Promise<{ id: string; token: string } | undefined> {
  const { thirdPartyCode: code, level, opened } = issued
  const thirdPartyId = await lockThirdParty(client, code)
  if (thirdPartyId === undefined) return undefined
  const isKnown = await queryValue<boolean>(
    client,
    'select exists (select from grandlivre.tokens where third_party_id = $1 and schema_id = $2)',
    [thirdPartyId, opened.schemaId],
  )
  const token = makeToken(level)
  const id = (await insertToken(client, { ...issued, hash: sha256(token), hint: token.slice(-4) }))!
  const registered: NewEvent = { name: 'thirdParty', operation: 'CREATE', data: { code } }
  const created = connectorEvent('CREATE', { ...opened, id, code })
  await publish(client, opened.schemaId, isKnown ? [created] : [registered, created])
  return { id, token }
}

/** @returns id of the token; undefined if no third party has this code */
export function insertToken(client: ClientBase, token: NewToken & { hash: Buffer; hint: string }) {
  const { thirdPartyCode, level, opened, hash, hint, groups, expiresAt } = token
  const { schemaId, firmId, folderId } = opened
  const text = `insert into grandlivre.tokens (schema_id, id, third_party_id, level, firm_id, folder_id, token_hash, hint, groups, expires_at)
     select $2, grandlivre.draw('grandlivre.ids'), id, $3, $4, $5, $6, $7, $8, coalesce($9::timestamptz, 'infinity') from grandlivre.third_parties where code = $1
     returning id`
  const values = [thirdPartyCode, schemaId, level, firmId, folderId, hash, hint, groups, expiresAt]
  return queryValue<string | undefined>(client, text, values)
}

interface RevokedToken extends Opened {
  id: string
  /** Code of the third party that owned it. */
  code: string
}

/** @returns undefined if there is no such token, or if it is revoked already */
export async function revokeToken(client: ClientBase, tokenId: string): Promise<RevokedToken | undefined> {
  const revoked = await revokeTokens(client, 't.id', tokenId)
  await publishRevoked(client, revoked)
  return revoked[0]
}

/** Revokes every token of a third party. */
export async function revokeTokensOf(client: ClientBase, thirdPartyCode: string): Promise<void> {
  await publishRevoked(client, await revokeTokens(client, 'p.code', thirdPartyCode))
}

/** Revokes one active token, or all tokens of a third party, without events. */
export function revokeTokens(client: ClientBase, by: 't.id' | 'p.code', value: string) {
  const text = `update grandlivre.tokens t set revoked_at = now() from grandlivre.third_parties p
     where p.id = t.third_party_id and t.revoked_at is null and ${by} = $1
     returning t.schema_id as "schemaId", t.id, t.firm_id as "firmId", t.folder_id as "folderId", p.code`
  return queryRows<RevokedToken>(client, text, [value])
}

async function publishRevoked(client: ClientBase, revoked: RevokedToken[]): Promise<void> {
  const bySchema = Map.groupBy(revoked, ({ schemaId }) => schemaId)
  const ascending = [...bySchema].sort(([one], [other]) => Number(one) - Number(other))
  for (const [schemaId, tokens] of ascending) {
    const events = tokens.map((token) => connectorEvent('DELETE', token))
    await publish(client, schemaId, events)
  }
}

function connectorEvent(
  operation: 'CREATE' | 'DELETE',
  { id, code, firmId, folderId }: RevokedToken,
): NewEvent {
  return { name: 'connector', operation, data: { id: Number(id), code }, firmId, folderId }
}

/** Seconds until the next token expires; undefined if no token in use expires. Runs inside `whileDelivering`. */
export async function readNextEnd(client: ClientBase): Promise<number | undefined> {
  const text = `select extract(epoch from min(expires_at) - now())::float8 from tokens
     where revoked_at is null and expires_at > now() and expires_at < 'infinity'`
  const seconds = await queryValue<number | null>(client, text)
  return seconds ?? undefined
}

/** Times are ISO 8601, UTC. */
export interface ListedToken extends Opened {
  id: string
  thirdPartyId: string
  partnerCode: string
  level: Level
  /** Name of the folder or firm that it opens. */
  openedName: string
  /** The token's last four characters. */
  hint: string
  createdAt: string
  activatedAt: string | null
  revokedAt: string | null
  /** The groups of routes for which it was issued; null for all. */
  groups: TokenGroup[] | null
  /** Null if it never expires. */
  expiresAt: string | null
  isExpired: boolean
  /** Whether the token is in use and expires within 14 days. */
  endsSoon: boolean
  /** Whether its third party is disconnected. */
  isDisconnected: boolean
}

const endsSoon = `t.revoked_at is null and t.expires_at > now() and t.expires_at <= now() + interval '14 days'`

export interface TokenFilter {
  id?: string | undefined
  thirdPartyId?: string | undefined
  /** Only tokens that open this folder or firm and have not ended. */
  opens?: Opened | undefined
  /** Only tokens that are in use and expire within 14 days. */
  endSoon?: boolean
  /** Only tokens older than the one with this id. */
  after?: string | undefined
  most?: number | undefined
}

/** Lists tokens of all tenants, newest first. */
export function listTokens(client: Connection, filter: TokenFilter) {
  const { id, thirdPartyId, opens, endSoon = false, after, most } = filter
  const { schemaId, firmId, folderId }: Partial<Opened> = opens ?? {}
  const text = `select t.id, t.third_party_id as "thirdPartyId", p.code as "partnerCode", t.level,
       t.schema_id as "schemaId", t.firm_id as "firmId", t.folder_id as "folderId",
       coalesce(f.name, m.name) as "openedName", t.hint, ${utc('t.created_at')} as "createdAt",
       ${utc('t.activated_at')} as "activatedAt", ${utc('t.revoked_at')} as "revokedAt",
       t.groups, ${utc("nullif(t.expires_at, 'infinity')")} as "expiresAt", t.expires_at <= now() as "isExpired",
       ${endsSoon} as "endsSoon", p.disconnected_at is not null as "isDisconnected"
     from (
       select * from grandlivre.tokens t
       where ($8::bigint is null or id = $8) and ($1::bigint is null or third_party_id = $1)
         and ($2::bigint is null or id < $2)
         and ($4::bigint is null or revoked_at is null and expires_at > now() and schema_id = $4 and firm_id = $5
           and (folder_id = $6 or folder_id is null))
         and (not $7 or ${endsSoon})
       order by id desc limit $3) as t
     join grandlivre.third_parties p on p.id = t.third_party_id
     join grandlivre.firms m on m.schema_id = t.schema_id and m.id = t.firm_id
     left join grandlivre.folders f on f.schema_id = t.schema_id and f.id = t.folder_id
     order by t.id desc`
  const values = [thirdPartyId, after, most, schemaId, firmId, folderId, endSoon, id]
  return queryRows<ListedToken>(client, text, values)
}
