/** Recognizes outages of the database, and turns them into 503. */
import { AppError } from '../errors.ts'
import { type DatabaseErrorClass, databaseErrorClasses } from '../telemetry/metrics.ts'
import { asUnsafeConnection, UnsafeConnection } from './check-connection.ts'

/**
 * The server cannot be reached or accepts no connections at the moment. This is not an error of configuration: it may
 * pass.
 */
export class DatabaseAway extends Error {
  /** The setting that contains the server's address. */
  readonly setting: string

  constructor(setting: string, cause: unknown) {
    super(refusalOf(setting, cause), { cause })
    this.setting = setting
  }
}

/** Why the server refused. @param name setting that contains the server's address */
export function refusalOf(name: string, error: unknown): string {
  // If a name has several addresses, Node reports the reason for each, without a message of its own.
  const reasons = error instanceof AggregateError ? error.errors : [error]
  const messages = reasons.map((reason) => (withRemedy(reason) as Error).message)
  return `The server of ${name} refuses the connection: ${messages.join('; ')}`
}

/**
 * Whether the server refuses every change for now: it is a standby that is about to be promoted, or its administrator
 * has set default_transaction_read_only. PostgreSQL reports SQLSTATE 25006, or 55000 for what a standby cannot do; our
 * statements cause 55000 in no other case. Only the code decides, because messages are in the language of the server. A
 * statement by this code that writes in the read-only snapshot of an export would therefore be retried, too.
 */
function isReadOnly(error: Error): boolean {
  return ['25006', '55000'].includes(codeOf(error))
}

/**
 * Whether an error means that the connection is lost or cannot be opened, or that the server takes no changes for now.
 * Errors of a wrong statement do not count. PostgreSQL reports SQLSTATE class 08 (connection), 57P0x (shutdown, crash,
 * start-up) or 53300 (no connection left).
 */
export function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (isReadOnly(error)) return true
  if (/^(08|57P0)|^53300$|^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/.test(codeOf(error))) return true
  // Errors of pg itself have no code. `timeout ...` comes from a pool or a client, `Query ...` from a query.
  return /^(Connection terminated|Client has encountered a connection error|timeout (exceeded|expired)|Query read timeout)/.test(
    error.message,
  )
}

/** Whether the database is away or was promoted. Takes errors of single statements and of transactions (`inTenant`). */
export function isAway(error: unknown): boolean {
  return isConnectionLoss(error) || (error instanceof AppError && error.code === 'ERR-UNAVAILABLE')
}

/**
 * Whether the same statement may succeed later: SQLSTATE classes 40 (transaction rollback), 53 (insufficient resources), 55
 * (object in use), 57 (operator intervention), 58 (system error). Undefined if the error has no SQLSTATE.
 */
export function mayPass(error: Error): boolean | undefined {
  const code = codeOf(error)
  return /^[0-9A-Z]{5}$/.test(code) ? /^(40|53|55|57|58)/.test(code) : undefined
}

/** The class by which operators count an error of the database; undefined for any other error. */
export function errorClassOf(error: unknown): DatabaseErrorClass | undefined {
  // An error that became an AppError was counted where it came from.
  if (!(error instanceof Error) || error instanceof AppError) return undefined
  const code = codeOf(error)
  const isState = /^[0-9A-Z]{5}$/.test(code) && /\d/.test(code)
  if (!isState) return isConnectionLoss(error) ? '08' : undefined
  return databaseErrorClasses.find((each) => code.startsWith(each)) ?? 'other'
}

/**
 * What a pooler reports, in the words of PgBouncer, and what operators do about it. PgBouncer gives all of these
 * SQLSTATE 08P01, the same as for a lost connection. The first pattern that matches counts: a pooler whose login the
 * server refuses quotes the server.
 */
const poolerReports = [
  {
    says: /no such database/,
    isLasting: true,
    remedy:
      'The pooler has no database of that name: add it to [databases] of PgBouncer, or correct the address.',
  },
  {
    says: /no such user|authentication failed|login rejected|not allowed/,
    isLasting: true,
    remedy:
      'The login or its password is wrong: compare the address with auth_file or auth_query of PgBouncer, and both with ' +
      'the role in PostgreSQL.',
  },
  {
    says: /no more connections allowed|client connections exceeded/,
    isFull: true,
    remedy:
      'The pooler takes no more clients: raise max_client_conn of PgBouncer, or lower EXPORTS_PER_THREAD, ' +
      'EXPORT_THREADS or the number of processes.',
  },
  {
    says: /query_wait_timeout/,
    isFull: true,
    remedy:
      'No session of the pooler became free in time: raise default_pool_size of PgBouncer, or lower EXPORTS_PER_THREAD. If ' +
      'the log of PgBouncer says that it cannot connect, PostgreSQL is the cause.',
  },
  {
    says: /server login has been failing|cannot connect to server|server_login_retry/,
    remedy:
      'The pooler cannot log in to PostgreSQL: check that the server runs, that host and port in [databases] of PgBouncer ' +
      'lead to it, and that name and password in its auth_file are those of the role. The log of PgBouncer has the reason.',
  },
]

function poolerReportOf(
  error: unknown,
): { isLasting?: boolean; isFull?: boolean; remedy: string } | undefined {
  if (!(error instanceof Error) || codeOf(error) !== '08P01') return undefined
  return poolerReports.find(({ says }) => says.test(error.message))
}

/** Whether a pooler refuses a login or a database that it does not know: waiting does not help. */
export function isPoolerRefusal(error: unknown): boolean {
  return poolerReportOf(error)?.isLasting === true
}

/**
 * Messages of pg itself. The cause may be a pooler that has no free session or cannot reach the server, and so sends
 * nothing at first.
 */
const silence = /^(Query read timeout|Connection terminated due to connection timeout|timeout expired)$/
const silentRemedy =
  'The database did not answer in time: check that the server runs and answers. If there is a pooler, check that it reaches ' +
  'the server; if all its sessions are taken, raise default_pool_size of PgBouncer or lower EXPORTS_PER_THREAD.'

const readOnlyRemedy =
  'The server takes no changes: it is a standby, which is to be promoted, or default_transaction_read_only is on. Otherwise ' +
  'the address does not lead to the primary.'

/**
 * Returns the error for the log. If it may come from a pooler, or the server is read-only, its message also says what
 * operators can do.
 */
function withRemedy(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof AppError) return error
  const isSilent = silence.test(error.message)
  const remedy = isSilent ? silentRemedy : isReadOnly(error) ? readOnlyRemedy : poolerReportOf(error)?.remedy
  if (remedy === undefined) return error
  const explained = new Error(`${error.message}. ${remedy}`, { cause: error })
  return Object.assign(explained, isSilent ? {} : { code: codeOf(error) })
}

/** How /readyz names the database if it is missing. */
export const theDatabase = 'the database'
export const aWritableDatabase = 'a writable database'
export const aFreeConnection = 'a free connection to the database'

/**
 * What the database lacks, in the words of /readyz; undefined for any other error. Includes lost connections, SQLSTATE
 * class 53 (a full disk, no memory, no connection left), and unsafe connections.
 */
export function missingOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (error instanceof AppError) return error.missing
  if (asUnsafeConnection(error) instanceof UnsafeConnection) return 'a safe connection to the database'
  if (isReadOnly(error)) return aWritableDatabase
  const code = codeOf(error)
  if (code === '53100') return 'disk space of the database'
  const isFull = code === '53300' || poolerReportOf(error)?.isFull || /^timeout exceeded/.test(error.message)
  if (isFull) return aFreeConnection
  if (code.startsWith('53')) return 'resources of the database'
  // Our statements never cause class 28 or 3D: a pooler passes on that the server no longer accepts its login or
  // database.
  return isConnectionLoss(error) || /^(28|3D)/.test(code) ? theDatabase : undefined
}

/**
 * Whether the error comes from the database and not from the code that reads it: the connection is lost or refused, or
 * the database reports an error.
 */
export function isDatabaseFailure(error: unknown): boolean {
  return missingOf(error) !== undefined || (error instanceof Error && /^[0-9A-Z]{5}$/.test(codeOf(error)))
}

/** 503 with Retry-After: a restart of PostgreSQL takes a few seconds. */
export function unavailable(cause: unknown): AppError {
  return new AppError('ERR-UNAVAILABLE', {
    headers: { 'Retry-After': '5' },
    missing: missingOf(cause) ?? theDatabase,
    cause: withRemedy(cause),
  })
}

/** 503 for an outage; any other error unchanged. */
export function unavailableIfMissing(error: unknown): unknown {
  return missingOf(error) === undefined || error instanceof AppError ? error : unavailable(error)
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}
