import type { QueryConfig } from 'pg'
import { limits } from '../config.ts'

/**
 * A look-up that every request or probe waits for. If the database keeps the connection but does not respond, as after
 * a network failure, the query fails after `limits.databaseConnectMs` and the connection is discarded.
 */
export function lookUp(query: { name?: string; text: string; values?: unknown[] }): QueryConfig {
  // pg accepts this timeout for a single query; its types declare it only for a whole connection.
  return { ...query, query_timeout: limits.databaseConnectMs } as QueryConfig
}
