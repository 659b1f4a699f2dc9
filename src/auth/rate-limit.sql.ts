import type { ClientBase } from 'pg'
import type { TokenFacts } from './callers.sql.ts'

export interface RateWindow {
  /** Requests of the token in its window, this one included. */
  requests: number
  /** When the next window begins, epoch milliseconds. */
  resetAt: number
  resetInMs: number
}

/**
 * Counts a request of a token. The window begins with its first request and ends `windowMs` later, by the clock of
 * the database: all processes that share it count together. Within `inTenant`.
 */
export async function countRequest(
  client: ClientBase,
  token: Pick<TokenFacts, 'schemaId' | 'id'>,
  windowMs: number,
): Promise<RateWindow> {
  const { rows } = await client.query<{ requests: number; resetAt: string; resetInMs: string }>(
    `insert into rate_windows as w (schema_id, token_id, started_at, requests)
     values ($1, $2, now(), 1)
     on conflict (schema_id, token_id) do update set
       started_at = case when w.started_at + $3 * interval '1 ms' <= now() then now() else w.started_at end,
       requests = case when w.started_at + $3 * interval '1 ms' <= now() then 1 else w.requests + 1 end
     returning requests,
       ceil(extract(epoch from started_at) * 1000 + $3)::text as "resetAt",
       ceil(extract(epoch from started_at - now()) * 1000 + $3)::text as "resetInMs"`,
    [token.schemaId, token.id, windowMs],
  )
  const [row] = rows
  return { requests: row!.requests, resetAt: Number(row!.resetAt), resetInMs: Number(row!.resetInMs) }
}
