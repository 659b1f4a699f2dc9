/** Third parties: the statements of the staff commands, which run as the owner of the tables. */
import type { ClientBase, Pool } from 'pg'
import { utc } from '../db/literal.ts'

export type Kind = 'partner' | 'customer'

export interface StoredSecret {
  /** SHA-256, for lookups. */
  hash: Buffer
  /** AES-256-GCM with the master key, for webhook signatures. */
  encrypted: Buffer
}

/** @returns id; undefined if the code is already in use */
export async function insertThirdParty(
  client: ClientBase,
  thirdParty: { code: string; name: string; kind: Kind; secret: StoredSecret },
): Promise<string | undefined> {
  const { rows } = await client.query<{ id: string }>(
    `with made as (
       insert into grandlivre.third_parties (id, code, name, kind)
       values (grandlivre.draw('grandlivre.ids'), $1, $2, $3)
       on conflict (code) do nothing
       returning id
     )
     insert into grandlivre.third_party_secrets (third_party_id, secret_hash, secret_encrypted)
     select id, $4, $5 from made
     returning third_party_id as id`,
    [thirdParty.code, thirdParty.name, thirdParty.kind, thirdParty.secret.hash, thirdParty.secret.encrypted],
  )
  return rows[0]?.id
}

/**
 * Retires the accepted secrets after at most `keepSeconds` and deletes those that are no longer accepted.
 * @param keepSeconds 0 retires them at once
 */
export async function retireSecrets(client: ClientBase, thirdPartyId: string, keepSeconds: number) {
  await client.query(
    `delete from grandlivre.third_party_secrets where third_party_id = $1 and retired_at <= clock_timestamp()`,
    [thirdPartyId],
  )
  await client.query(
    `update grandlivre.third_party_secrets
     set retired_at = least(retired_at, clock_timestamp() + make_interval(secs => $2))
     where third_party_id = $1`,
    [thirdPartyId, keepSeconds],
  )
}

/** Stores the secret that is accepted and signs from now on. The previous one must have been retired. */
export async function insertSecret(client: ClientBase, thirdPartyId: string, secret: StoredSecret) {
  await client.query(
    `insert into grandlivre.third_party_secrets (third_party_id, secret_hash, secret_encrypted) values ($1, $2, $3)`,
    [thirdPartyId, secret.hash, secret.encrypted],
  )
}

/** Locks the third party until the transaction ends. Undefined if none has this code. */
export async function lockThirdParty(client: ClientBase, code: string) {
  const { rows } = await client.query<{ id: string; code: string }>(
    'select id, code from grandlivre.third_parties where code = $1 for no key update',
    [code],
  )
  return rows[0]
}

/**
 * @param reason of disconnecting it; null connects it again
 * @returns undefined if no third party has this code, or it is in that state already
 */
export async function updateConnection(client: ClientBase, code: string, reason: string | null) {
  const { rows } = await client.query<{ id: string; code: string }>(
    `update grandlivre.third_parties
     set disconnected_at = case when $2::text is null then null else now() end, disconnected_reason = $2
     where code = $1 and (disconnected_at is null) = ($2::text is not null)
     returning id, code`,
    [code, reason],
  )
  return rows[0]
}

/** What a partner has in place of the settings RATE_LIMIT_*; null: as the setting. */
export interface PartnerLimits {
  requests: number | null
  windowMs: number | null
  concurrent: number | null
}

/** Sets those limits that are given, of a third party that exists. @returns all of them */
export async function updateLimits(
  client: ClientBase,
  code: string,
  given: Partial<PartnerLimits>,
): Promise<PartnerLimits> {
  const { rows } = await client.query<{ limits: PartnerLimits }>(
    `insert into grandlivre.partner_limits as kept (third_party_id, requests, window_ms, concurrent)
     select p.id, n.requests, n."windowMs", n.concurrent
     from grandlivre.third_parties p left join grandlivre.partner_limits l on l.third_party_id = p.id
       cross join json_to_record((${limitsOf('l')}::jsonb || $2)::json) n (requests int, "windowMs" int, concurrent int)
     where p.code = $1
     on conflict (third_party_id) do update set (requests, window_ms, concurrent) =
       (excluded.requests, excluded.window_ms, excluded.concurrent)
     returning ${limitsOf('kept')} as limits`,
    [code, JSON.stringify(given)],
  )
  return rows[0]!.limits
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
  /** Null while connected. */
  disconnectedAt: string | null
  disconnectedReason: string | null
  limits: PartnerLimits
}

const columns = `id, code, name, kind, ${utc('created_at')} as "createdAt", ${utc('disconnected_at')} as "disconnectedAt",
  disconnected_reason as "disconnectedReason", (select ${limitsOf('l')} from (select) one
    left join grandlivre.partner_limits l on l.third_party_id = third_parties.id) as limits`

export interface ThirdPartyFilter {
  /** A part of the code or name, in any case. */
  search?: string | undefined
  /** Only codes after this one. */
  after?: string | undefined
  most?: number | undefined
}

/** In the order of their codes. */
export async function listThirdParties(
  client: ClientBase | Pool,
  { search = '', after = '', most }: ThirdPartyFilter,
): Promise<ThirdParty[]> {
  const { rows } = await client.query<ThirdParty>(
    `select ${columns} from grandlivre.third_parties
     where code > $2 and ($1 = '' or strpos(code, upper($1)) > 0 or strpos(lower(name), lower($1)) > 0)
     order by code limit $3`,
    [search, after, most],
  )
  return rows
}

/** Undefined if none has this code. */
export async function findThirdParty(client: ClientBase | Pool, code: string) {
  const { rows } = await client.query<ThirdParty>(
    `select ${columns} from grandlivre.third_parties where code = $1`,
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
export async function listSecrets(client: ClientBase | Pool, thirdPartyId: string): Promise<KeptSecret[]> {
  const { rows } = await client.query<KeptSecret>(
    `select ${utc('created_at')} as "createdAt", ${utc('retired_at')} as "retiredAt"
     from grandlivre.third_party_secrets
     where third_party_id = $1 and (retired_at is null or retired_at > now())
     order by created_at desc limit 20`,
    [thirdPartyId],
  )
  return rows
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
