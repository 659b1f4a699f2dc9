/** What the database cannot give at the moment, and the 503 that follows. */
import { AppError } from '../errors.ts'
import { asUnsafeConnection, UnsafeConnection } from './check-connection.ts'

/**
 * Whether an error says that the connection is gone or could not be made, rather than that a statement is wrong.
 * SQLSTATE classes 08 (connection), 57P0x (shutdown, crash, start-up) and 53300 (no connection left) are PostgreSQL's
 * words for it.
 */
export function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (/^(08|57P0)|^53300$|^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/.test(codeOf(error))) return true
  // pg's own errors carry no code. `timeout ...` is of a pool and of a single client, `Query ...` of a query.
  return /^(Connection terminated|Client has encountered a connection error|timeout (exceeded|expired)|Query read timeout)/.test(
    error.message,
  )
}

/**
 * What of the database is missing, as /readyz names it; undefined for any other error. Besides lost connections: what
 * PostgreSQL says in SQLSTATE class 53 (a full disk, no memory, no connection left), and a connection that is not safe.
 */
export function missingOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (error instanceof AppError) return error.missing
  if (asUnsafeConnection(error) instanceof UnsafeConnection) return 'a safe connection to the database'
  const code = codeOf(error)
  if (code === '53100') return 'room on the disk of the database'
  if (code === '53300' || /^timeout exceeded/.test(error.message)) return 'a free connection to the database'
  if (code.startsWith('53')) return 'resources of the database'
  return isConnectionLoss(error) ? 'the database' : undefined
}

/** 503 with the moment to come back: a restart of PostgreSQL takes a few seconds. */
export function unavailable(cause: unknown): AppError {
  return new AppError('ERR-UNAVAILABLE', {
    headers: { 'Retry-After': '5' },
    missing: missingOf(cause) ?? 'the database',
    cause,
  })
}

/** 503 where the database cannot, any other error as it is. */
export function unavailableIfMissing(error: unknown): unknown {
  return missingOf(error) === undefined || error instanceof AppError ? error : unavailable(error)
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}
