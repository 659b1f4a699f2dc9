import type { QueryConfig } from 'pg'
import { limits } from '../config.ts'

/**
 * A look-up that every request, or every probe, waits for. A database that keeps its connections and answers nothing, as
 * behind a network that went away, is given up after `limits.databaseConnectMs`, and the connection with it.
 */
export function lookUp(query: { name?: string; text: string; values?: unknown[] }): QueryConfig {
  // pg knows this timeout for a single query, its types only for all queries of a connection.
  return { ...query, query_timeout: limits.databaseConnectMs } as QueryConfig
}
