import type { ClientBase, Pool } from 'pg'
import { lookUp } from '../db/look-up.ts'
import type { Level } from './secrets.ts'

/** Facts about a caller that sent a known partner secret. */
export interface CallerFacts {
  thirdPartyId: string
  kind: 'partner' | 'customer'
  /** Null while the third party is connected. */
  disconnectedReason: string | null
  underMaintenance: boolean
  /** Null if the token is unknown, revoked, or belongs to another third party. */
  token: TokenFacts | null
}

export interface TokenFacts {
  id: string
  schemaId: string
  level: Level
  firmId: string
  /** The folder of a company token; null for a firm token, which names a folder with each request. */
  folderId: string | null
}

/** The rate-limit window of a token, on the database's clock. */
export interface RateWindow {
  /** Requests in this window, including the current one. */
  requests: number
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
 * @returns the caller and its window, which is undefined if the token is unknown; undefined if no third party has this
 *   secret
 */
export async function authenticateCaller(
  database: Pool,
  secretHash: Buffer,
  tokenHash: Buffer,
  windowMs: number,
) {
  const enter = lookUp({
    name: 'enter',
    text: `select *, ceil(extract(epoch from window_started_at) * 1000 + $3)::float8 as reset_at,
                  ceil(extract(epoch from window_started_at - now()) * 1000 + $3)::float8 as reset_in_ms
           from grandlivre.enter($1, $2, $3)`,
    values: [secretHash, tokenHash, windowMs],
  })
  const [row] = (await database.query(enter)).rows
  if (!row) return undefined
  const window: RateWindow = { requests: row.requests, resetAt: row.reset_at, resetInMs: row.reset_in_ms }
  return { caller: callerFacts(row), window: row.token_id === null ? undefined : window }
}

/** As `authenticateCaller`, but counts and activates nothing. */
export async function findCaller(
  database: Pool | ClientBase,
  secretHash: Buffer,
  tokenHash: Buffer,
): Promise<CallerFacts | undefined> {
  const text = 'select * from grandlivre.caller($1, $2)'
  const { rows } = await database.query(lookUp({ name: 'caller', text, values: [secretHash, tokenHash] }))
  return rows[0] && callerFacts(rows[0])
}

// biome-ignore lint/suspicious/noExplicitAny: a row, whose columns the two statements above name alike
function callerFacts(row: any): CallerFacts {
  const token: TokenFacts = {
    id: row.token_id,
    schemaId: row.schema_id,
    level: row.level,
    firmId: row.firm_id,
    folderId: row.folder_id,
  }
  return {
    thirdPartyId: row.third_party_id,
    kind: row.kind,
    disconnectedReason: row.disconnected_reason,
    underMaintenance: row.under_maintenance,
    token: row.token_id === null ? null : token,
  }
}
