/** Token statements of the service, and of staff commands (as the owner of the tables). */
import type { ClientBase, Pool } from 'pg'
import { idLiteral } from '../db/literal.ts'
import { askInTenant } from '../db/pool.ts'
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

/** The scope of a token: one folder, or all folders of a firm. */
export interface Opened {
  schemaId: string
  firmId: string
  folderId: string | null
}

/** Undefined if no tenant has this folder. */
export async function findFolder(client: ClientBase, folderId: string): Promise<Opened | undefined> {
  const { rows } = await client.query<Opened>(
    `select schema_id as "schemaId", firm_id as "firmId", id as "folderId" from grandlivre.folders where id = $1`,
    [folderId],
  )
  return rows[0]
}

/** Undefined if no tenant has this firm. */
export async function findFirm(client: ClientBase, firmId: string): Promise<Opened | undefined> {
  const { rows } = await client.query<Opened>(
    `select schema_id as "schemaId", id as "firmId", null as "folderId" from grandlivre.firms where id = $1`,
    [firmId],
  )
  return rows[0]
}

/** @returns id of the token; undefined if no third party has this code */
export async function insertToken(
  client: ClientBase,
  token: { thirdPartyCode: string; level: Level; opened: Opened; hash: Buffer; hint: string },
): Promise<string | undefined> {
  const { opened } = token
  const { rows } = await client.query<{ id: string }>(
    `insert into grandlivre.tokens (schema_id, id, third_party_id, level, firm_id, folder_id, token_hash, hint)
     select $2, nextval('grandlivre.ids'), id, $3, $4, $5, $6, $7 from grandlivre.third_parties where code = $1
     returning id`,
    [
      token.thirdPartyCode,
      opened.schemaId,
      token.level,
      opened.firmId,
      opened.folderId,
      token.hash,
      token.hint,
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
    `select distinct schema_id from grandlivre.tokens where third_party_id = $1 and revoked_at is null
     order by schema_id`,
    [thirdPartyId],
  )
  return rows.map((row) => row.schema_id)
}

export interface ListedToken {
  id: string
  thirdPartyCode: string
  level: Level
  schemaId: string
  firmId: string
  folderId: string | null
  /** The token's last four characters. */
  hint: string
  createdAt: Date
  activatedAt: Date | null
  revokedAt: Date | null
  canBeActivated: boolean
}

/** All tokens of all tenants, oldest first. */
export async function listTokens(client: ClientBase): Promise<ListedToken[]> {
  const { rows } = await client.query<ListedToken>(
    `select t.id, p.code as "thirdPartyCode", t.level, t.schema_id as "schemaId", t.firm_id as "firmId",
            t.folder_id as "folderId", t.hint, t.created_at as "createdAt", t.activated_at as "activatedAt",
            t.revoked_at as "revokedAt", p.disconnected_at is null as "canBeActivated"
     from grandlivre.tokens t join grandlivre.third_parties p on p.id = t.third_party_id
     order by t.id`,
  )
  return rows
}
