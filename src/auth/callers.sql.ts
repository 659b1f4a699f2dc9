import type { ClientBase, Pool } from 'pg'
import { idLiteral, utc } from '../db/literal.ts'
import { lookUp } from '../db/look-up.ts'
import { askInTenant } from '../db/pool.ts'
import type { Level } from './secrets.ts'

/** Facts about a caller that sent a known partner secret. */
export interface CallerFacts {
  thirdPartyId: string
  kind: 'partner' | 'customer'
  /** Null while the third party is connected. */
  disconnectedReason: string | null
  underMaintenance: boolean
  /** Null if the token is unknown, revoked, expired, or belongs to another third party. */
  token: TokenFacts | null
}

/** What routes belong to, and what a token may be issued for alone. */
export const tokenGroups = ['movements', 'exports', 'webhooks', 'resources', 'employees'] as const
export type TokenGroup = (typeof tokenGroups)[number]

export interface TokenFacts {
  id: string
  schemaId: string
  level: Level
  firmId: string
  /** The folder of a company token; null for a firm token, which names a folder with each request. */
  folderId: string | null
  /** Null: all. */
  groups: readonly TokenGroup[] | null
}

/** The rate-limit window of a token, on the database's clock. */
export interface RateWindow {
  /** Requests in this window, including the current one. */
  requests: number
  /** Requests that the partner may send in it. */
  most: number
  /** Requests of the partner on one route and folder that may run at once, if it has a limit of its own. */
  concurrent: number | null
  /** As PostgreSQL writes it. */
  startedAt: string
  /** Start of the next window, epoch milliseconds. */
  resetAt: number
  resetInMs: number
}

/**
 * Identifies the caller and counts the request across all processes that share the database. The first request of a
 * token activates it, whatever its outcome; if activation would have to wait for a lock, a later request does it
 * (SQL function `activate`).
 *
 * @param secretHash SHA-256, 32 bytes
 * @param tokenHash SHA-256, 32 bytes
 * @param rate limits of partners that have none of their own
 * @returns the caller and its window, which is undefined if the token is unknown; undefined if no third party has this
 *   secret
 */
export async function authenticateCaller(
  database: Pool,
  secretHash: Buffer,
  tokenHash: Buffer,
  rate: { requests: number; windowMs: number },
) {
  const admit = lookUp({
    name: 'admit',
    text: `select e.*, e.window_started_at::text as started_at, coalesce(p.requests, $4) as most, p.concurrent,
                  ceil(extract(epoch from e.window_started_at) * 1000 + length)::float8 as reset_at,
                  ceil(extract(epoch from e.window_started_at - now()) * 1000 + length)::float8 as reset_in_ms
           from grandlivre.admit($1, $2, $3) e left join grandlivre.partner_limits p on p.third_party_id = e.third_party_id
             cross join lateral (select coalesce(p.window_ms, $3) as length) own`,
    values: [secretHash, tokenHash, rate.windowMs, rate.requests],
  })
  const [row] = (await database.query(admit)).rows
  if (!row) return undefined
  const window: RateWindow = {
    requests: row.requests,
    most: row.most,
    concurrent: row.concurrent,
    startedAt: row.started_at,
    resetAt: row.reset_at,
    resetInMs: row.reset_in_ms,
  }
  return { caller: callerFacts(row), window: row.token_id === null ? undefined : window }
}

/**
 * Takes one request back from the rate of a token.
 * @returns those that the window counts then; undefined if it is over
 */
export async function uncountRequest(
  database: Pool,
  schemaId: string,
  tokenId: string,
  startedAt: string,
): Promise<number | undefined> {
  const text = 'select uncount_request($1, $2, $3) as requests'
  const values = [schemaId, tokenId, startedAt]
  const { rows } = await database.query(lookUp({ name: 'uncount request', text, values }))
  return rows[0].requests ?? undefined
}

/** As `authenticateCaller`, but counts and activates nothing. */
export async function findCaller(
  database: Pool | ClientBase,
  secretHash: Buffer,
  tokenHash: Buffer,
): Promise<CallerFacts | undefined> {
  const text = 'select * from grandlivre.caller_facts($1, $2)'
  const { rows } = await database.query(
    lookUp({ name: 'caller facts', text, values: [secretHash, tokenHash] }),
  )
  return rows[0] && callerFacts(rows[0])
}

/** When a token ends, ISO 8601, UTC. Null: never. */
export async function endOfToken(
  database: Pool,
  { schemaId, tokenId }: { schemaId: string; tokenId: string },
): Promise<string | null> {
  const [row] = await askInTenant<{ ends: string | null }>(
    database,
    schemaId,
    `select ${utc("nullif(expires_at, 'infinity')")} as ends from grandlivre.tokens where id = ${idLiteral(tokenId)}`,
  )
  return row?.ends ?? null
}

// biome-ignore lint/suspicious/noExplicitAny: a row, whose columns the two statements above name alike
function callerFacts(row: any): CallerFacts {
  const token: TokenFacts = {
    id: row.token_id,
    schemaId: row.schema_id,
    level: row.level,
    firmId: row.firm_id,
    folderId: row.folder_id,
    groups: row.groups,
  }
  return {
    thirdPartyId: row.third_party_id,
    kind: row.kind,
    disconnectedReason: row.disconnected_reason,
    underMaintenance: row.under_maintenance,
    token: row.token_id === null ? null : token,
  }
}

/**
 * Request slots: advisory locks of one session, by names unique in the database. `grandlivre place` is part of the
 * lock's key and must stay: processes of two versions that share a database during an upgrade count together.
 *
 * The two statements of every request are named, so that PostgreSQL keeps their plans: 0.05 ms of the database instead
 * of 0.11.
 */

/**
 * Locks the first slot that no other session holds. PostgreSQL would grant the session's own locks again, so `names`
 * must not include them. The lock is the only condition: rows are tried in order, and the first success ends the
 * statement.
 */
export async function lockOneSlot(client: ClientBase, names: string[]): Promise<string | undefined> {
  const { rows } = await client.query<{ name: string }>({
    name: 'lock slot',
    text: `select name from unnest($1::text[]) as name
           where pg_try_advisory_lock(hashtextextended('grandlivre place ' || name, 0)) limit 1`,
    values: [names],
  })
  return rows[0]?.name
}

/** Locks all of these slots that no other session holds. */
export async function lockSlots(client: ClientBase, names: string[]): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select name from unnest($1::text[]) as name
     where pg_try_advisory_lock(hashtextextended('grandlivre place ' || name, 0))`,
    [names],
  )
  return rows.map(({ name }) => name)
}

export async function unlockSlot(client: ClientBase, name: string): Promise<void> {
  await client.query({
    name: 'unlock slot',
    text: `select pg_advisory_unlock(hashtextextended('grandlivre place ' || $1, 0))`,
    values: [name],
  })
}
