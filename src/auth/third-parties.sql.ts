/**
 * Third parties, and changes to them by staff, with their events. Runs as the owner of the tables. A third party
 * belongs to no schema, so every schema in which it holds a token gets the event. (Its registration is published with
 * its first token there, see tokens.sql.ts.)
 */
import type { ClientBase } from 'pg'
import { utc } from '../db/literal.ts'
import { type Connection, queryRow, queryRows, queryValue } from '../db/statement.ts'
import { publish } from '../events/publish.ts'
import { encrypt, makeToken, sha256 } from './secrets.ts'

export type Kind = 'partner' | 'customer'

/**
 * Pattern of the codes of third parties. Has the flag of patterns in HTML forms, which requires the last - to be
 * escaped.
 */
export const codePattern = /^[A-Z0-9][A-Z0-9_\-]{0,31}$/v

interface StoredSecret {
  /** SHA-256, for lookups. */
  hash: Buffer
  /** AES-256-GCM with the master key, for webhook signatures. */
  encrypted: Buffer
}

/** Makes a new secret. `secret` has the forms in which it is stored. @param masterKey 32 bytes */
export function makeSecret(masterKey: Buffer): { plain: string; secret: StoredSecret } {
  const plain = makeToken('secret')
  return { plain, secret: { hash: sha256(plain), encrypted: encrypt(plain, masterKey) } }
}

/** @returns the id; undefined if the code is already in use */
export function insertThirdParty(
  client: ClientBase,
  { code, name, kind, secret }: { code: string; name: string; kind: Kind; secret: StoredSecret },
) {
  const text = `with made as (
       insert into grandlivre.third_parties (id, code, name, kind)
       values (grandlivre.draw('grandlivre.ids'), $1, $2, $3)
       on conflict (code) do nothing
       returning id
     )
     insert into grandlivre.third_party_secrets (third_party_id, secret_hash, secret_encrypted)
     select id, $4, $5 from made
     returning third_party_id`
  return queryValue<string | undefined>(client, text, [code, name, kind, secret.hash, secret.encrypted])
}

/**
 * Replaces the secret that signs. Calls may use either the old or the new secret until the old one is retired.
 * @param keepSeconds how long the old secret is accepted; 0: not at all
 * @returns false if no third party has this code
 */
export async function rotateSecret(
  client: ClientBase,
  code: string,
  secret: StoredSecret,
  keepSeconds: number,
): Promise<boolean> {
  const id = await lockThirdParty(client, code)
  if (id === undefined) return false
  await client.query(
    'delete from grandlivre.third_party_secrets where third_party_id = $1 and retired_at <= clock_timestamp()',
    [id],
  )
  await client.query(
    `update grandlivre.third_party_secrets
     set retired_at = least(retired_at, clock_timestamp() + make_interval(secs => $2))
     where third_party_id = $1`,
    [id, keepSeconds],
  )
  await client.query(
    `insert into grandlivre.third_party_secrets (third_party_id, secret_hash, secret_encrypted) values ($1, $2, $3)`,
    [id, secret.hash, secret.encrypted],
  )
  await publishChange(client, id, 'UPDATE', code)
  return true
}

/** Locks the third party until the transaction ends. @returns its id; undefined if no third party has this code */
export function lockThirdParty(client: ClientBase, code: string) {
  const text = 'select id from grandlivre.third_parties where code = $1 for no key update'
  return queryValue<string | undefined>(client, text, [code])
}

/**
 * Disconnects a third party, or connects it again.
 * @param reason why it is disconnected; null connects it again
 * @returns false if no third party has this code, or it is in that state already
 */
export async function setConnection(client: ClientBase, code: string, reason: string | null) {
  const text = `update grandlivre.third_parties
     set disconnected_at = case when $2::text is null then null else now() end, disconnected_reason = $2
     where code = $1 and (disconnected_at is null) = ($2::text is not null)
     returning id`
  const id = await queryValue<string | undefined>(client, text, [code, reason])
  if (id !== undefined) await publishChange(client, id, reason === null ? 'UPDATE' : 'DELETE', code)
  return id !== undefined
}

/** Publishes a change in every schema in which the third party holds an active token, in ascending order. */
async function publishChange(client: ClientBase, id: string, operation: 'UPDATE' | 'DELETE', code: string) {
  const text = `select distinct schema_id as id from grandlivre.tokens
     where third_party_id = $1 and revoked_at is null and expires_at > now() order by 1`
  const schemas = await queryRows<{ id: string }>(client, text, [id])
  for (const schema of schemas)
    await publish(client, schema.id, [{ name: 'thirdParty', operation, data: { code } }])
}

/** Limits of a partner that replace the settings RATE_LIMIT_*. If null, the setting applies. */
export interface PartnerLimits {
  requests: number | null
  windowMs: number | null
  concurrent: number | null
}

/** Sets the given limits of an existing third party. @returns all of its limits */
export function updateLimits(client: ClientBase, code: string, given: Partial<PartnerLimits>) {
  const text = `insert into grandlivre.partner_limits as kept (third_party_id, requests, window_ms, concurrent)
     select p.id, n.requests, n."windowMs", n.concurrent
     from grandlivre.third_parties p left join grandlivre.partner_limits l on l.third_party_id = p.id
       cross join json_to_record((${limitsOf('l')}::jsonb || $2)::json) n (requests int, "windowMs" int, concurrent int)
     where p.code = $1
     on conflict (third_party_id) do update set (requests, window_ms, concurrent) =
       (excluded.requests, excluded.window_ms, excluded.concurrent)
     returning ${limitsOf('kept')}`
  return queryValue<PartnerLimits>(client, text, [code, JSON.stringify(given)])
}

const limitsOf = (row: string) =>
  `json_build_object('requests', ${row}.requests, 'windowMs', ${row}.window_ms, 'concurrent', ${row}.concurrent)`

/** Times are ISO 8601, UTC. */
export interface ThirdParty {
  id: string
  code: string
  name: string
  kind: Kind
  createdAt: string
  /** Null if it is connected. */
  disconnectedAt: string | null
  disconnectedReason: string | null
  limits: PartnerLimits
}

const selectThirdParties = `select id, code, name, kind, ${utc('created_at')} as "createdAt",
    ${utc('disconnected_at')} as "disconnectedAt", disconnected_reason as "disconnectedReason",
    (select ${limitsOf('l')} from (select) one
     left join grandlivre.partner_limits l on l.third_party_id = third_parties.id) as limits
  from grandlivre.third_parties`

/**
 * Lists third parties by code.
 * @param filter.search a part of the code or name, in upper or lower case
 * @param filter.after only codes after this one
 */
export function listThirdParties(
  client: Connection,
  filter: { search?: string | undefined; after?: string | undefined; most?: number | undefined },
) {
  const { search = '', after = '', most } = filter
  const text = `${selectThirdParties}
     where code > $2 and ($1 = '' or strpos(code, upper($1)) > 0 or strpos(lower(name), lower($1)) > 0)
     order by code limit $3`
  return queryRows<ThirdParty>(client, text, [search, after, most])
}

/** Returns undefined if no third party has this code. */
export function findThirdParty(client: Connection, code: string) {
  return queryRow<ThirdParty>(client, `${selectThirdParties} where code = $1`, [code])
}

export interface KeptSecret {
  createdAt: string
  /** Until when requests may carry the secret. Null for the newest secret, which signs. */
  retiredAt: string | null
}

/** Lists the secrets that requests may carry, newest first. */
export function listSecrets(client: Connection, thirdPartyId: string) {
  const text = `select ${utc('created_at')} as "createdAt", ${utc('retired_at')} as "retiredAt"
     from grandlivre.third_party_secrets
     where third_party_id = $1 and (retired_at is null or retired_at > now())
     order by created_at desc limit 20`
  return queryRows<KeptSecret>(client, text, [thirdPartyId])
}

/** Reads the codes of third parties. Returns a map from id to code. */
export async function readCodes(client: Connection, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const text = 'select id, code from grandlivre.third_parties where id = any ($1)'
  const rows = await queryRows<{ id: string; code: string }>(client, text, [ids])
  return new Map(rows.map(({ id, code }) => [id, code]))
}
