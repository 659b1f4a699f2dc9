import type { ClientBase, Pool } from 'pg'
import { idLiteral, utc } from '../db/literal.ts'
import { askInTenant } from '../db/pool.ts'
import { lookUp, queryRow, queryValue } from '../db/statement.ts'
import type { Level } from './secrets.ts'
import type { Kind } from './third-parties.sql.ts'

/** Groups of routes. A token may be issued for some of them only. */
export const tokenGroups = ['movements', 'exports', 'webhooks', 'resources', 'employees'] as const
export type TokenGroup = (typeof tokenGroups)[number]

/** A caller whose token and secret belong together, with what is known of both. Ids are decimal digits. */
export interface KnownCaller {
  thirdPartyId: string
  kind: Kind
  /** Null if the third party is connected. */
  disconnectedReason: string | null
  underMaintenance: boolean
  tokenId: string
  schemaId: string
  level: Level
  firmId: string
  /** The folder of a company token. Null for a firm token: it names a folder with each request. */
  folderId: string | null
  /** The groups for which the token was issued; null for all. */
  groups: readonly TokenGroup[] | null
}

/**
 * Facts about a caller that sent a known partner secret. `tokenId` is null if the token is unknown, revoked, expired, or
 * belongs to another third party.
 */
export type CallerFacts = KnownCaller | { tokenId: null }

/** Columns of a row `e` of the SQL functions `admit` and `caller_facts`. */
const callerColumns = `e.third_party_id as "thirdPartyId", e.kind, e.disconnected_reason as "disconnectedReason",
  e.under_maintenance as "underMaintenance", e.token_id as "tokenId", e.schema_id as "schemaId", e.level,
  e.firm_id as "firmId", e.folder_id as "folderId", e.groups`

/** The rate-limit window of a token, on the database's clock. */
export interface RateWindow {
  /** Requests in this window, including the current one. */
  requests: number
  /** How many requests the partner may send in this window. */
  most: number
  /** How many requests of the partner may run at once on one route and folder. Null: the partner has no such limit. */
  concurrent: number | null
  /** Start of this window, in the notation of PostgreSQL. */
  startedAt: string
  /** Start of the next window, epoch milliseconds. */
  resetAt: number
  resetInMs: number
}

/**
 * Identifies the caller and counts the request across all processes that share the database. The first request of a
 * token activates it, even if the request fails. If activation would have to wait for a lock, a later request activates
 * the token (SQL function `activate`).
 *
 * @param secretHash SHA-256, 32 bytes
 * @param tokenHash SHA-256, 32 bytes
 * @param rate limits for partners that have none of their own
 * @returns the caller and its window, in which the request is not counted if the token is unknown; undefined if no
 *   third party has this secret
 */
export async function authenticateCaller(
  database: Pool,
  secretHash: Buffer,
  tokenHash: Buffer,
  rate: { requests: number; windowMs: number },
) {
  const admit = lookUp({
    name: 'admit',
    text: `select ${callerColumns}, e.requests, e.window_started_at::text as "startedAt", coalesce(p.requests, $4) as most,
                  p.concurrent, ceil(extract(epoch from e.window_started_at) * 1000 + length)::float8 as "resetAt",
                  ceil(extract(epoch from e.window_started_at - now()) * 1000 + length)::float8 as "resetInMs"
           from grandlivre.admit($1, $2, $3) e left join grandlivre.partner_limits p on p.third_party_id = e.third_party_id
             cross join lateral (select coalesce(p.window_ms, $3) as length) own`,
    values: [secretHash, tokenHash, rate.windowMs, rate.requests],
  })
  const row = await queryRow<CallerFacts & RateWindow>(database, admit)
  if (!row) return undefined
  const { requests, most, concurrent, startedAt, resetAt, resetInMs, ...caller } = row
  return { caller, window: { requests, most, concurrent, startedAt, resetAt, resetInMs } }
}

/**
 * Takes one request back from the count of a token.
 * @returns the requests that the window counts then; null if the window is over
 */
export function uncountRequest(database: Pool, { schemaId, tokenId }: KnownToken, startedAt: string) {
  const text = 'select uncount_request($1, $2, $3)'
  const values = [schemaId, tokenId, startedAt]
  return queryValue<number | null>(database, lookUp({ name: 'uncount request', text, values }))
}

type KnownToken = Pick<KnownCaller, 'schemaId' | 'tokenId'>

/** Identifies the caller as `authenticateCaller` does, without counting the request or activating the token. */
export function findCaller(database: Pool | ClientBase, secretHash: Buffer, tokenHash: Buffer) {
  const text = `select ${callerColumns} from grandlivre.caller_facts($1, $2) e`
  const values = [secretHash, tokenHash]
  return queryRow<CallerFacts>(database, lookUp({ name: 'caller facts', text, values }))
}

/** When a token expires, ISO 8601, UTC; null if never. */
export async function endOfToken(database: Pool, { schemaId, tokenId }: KnownToken): Promise<string | null> {
  const [row] = await askInTenant<{ ends: string | null }>(
    database,
    schemaId,
    `select ${utc("nullif(expires_at, 'infinity')")} as ends from grandlivre.tokens where id = ${idLiteral(tokenId)}`,
  )
  return row?.ends ?? null
}

/** @param folderId decimal digits, within bigint */
export async function isFolderOfFirm(
  database: Pool,
  { schemaId, firmId }: Pick<KnownCaller, 'schemaId' | 'firmId'>,
  folderId: string,
): Promise<boolean> {
  const [schema, folder, firm] = [schemaId, folderId, firmId].map(idLiteral)
  const text = `select from folders where schema_id = ${schema} and id = ${folder} and firm_id = ${firm}`
  return (await askInTenant(database, schemaId, text)).length === 1
}

/** Turns maintenance mode on or off. While it is on, every process answers authenticated requests with 503. */
export async function setMaintenance(client: ClientBase, underMaintenance: boolean): Promise<void> {
  await client.query('update grandlivre.service_state set under_maintenance = $1', [underMaintenance])
}

export function isUnderMaintenance(client: ClientBase): Promise<boolean> {
  return queryValue(client, 'select under_maintenance from grandlivre.service_state')
}
