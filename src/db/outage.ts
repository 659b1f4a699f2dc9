/** Outages of the database, and their 503. */
import { AppError } from '../errors.ts'
import { type DatabaseErrorClass, databaseErrorClasses } from '../telemetry/telemetry.ts'
import { asUnsafeConnection, UnsafeConnection } from './check-connection.ts'

/**
 * The server cannot be reached or accepts no connections at the moment. This is not an error of configuration, and may
 * pass.
 */
export class DatabaseAway extends Error {
  /** The setting with its address. */
  readonly setting: string

  constructor(setting: string, cause: unknown) {
    super(refusalOf(setting, cause), { cause })
    this.setting = setting
  }
}

/** @param name setting with the address */
export function refusalOf(name: string, error: unknown): string {
  // If a name has several addresses, Node reports the reason for each, without a message of its own.
  const reasons = error instanceof AggregateError ? error.errors : [error]
  return `The server of ${name} refuses the connection: ${reasons.map((reason: Error) => reason.message).join('; ')}`
}

/**
 * Whether an error means that the connection is lost or could not be opened, rather than that a statement is wrong.
 * PostgreSQL reports SQLSTATE class 08 (connection), 57P0x (shutdown, crash, start-up) or 53300 (no connection left).
 */
export function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (/^(08|57P0)|^53300$|^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/.test(codeOf(error))) return true
  // Errors of pg itself have no code. `timeout ...` comes from a pool or a client, `Query ...` from a query.
  return /^(Connection terminated|Client has encountered a connection error|timeout (exceeded|expired)|Query read timeout)/.test(
    error.message,
  )
}

/** The class by which operators count an error of the database; undefined for any other error. */
export function errorClassOf(error: unknown): DatabaseErrorClass | undefined {
  // One that became an AppError was counted where it came from.
  if (!(error instanceof Error) || error instanceof AppError) return undefined
  const code = codeOf(error)
  const isState = /^[0-9A-Z]{5}$/.test(code) && /\d/.test(code)
  if (!isState) return isConnectionLoss(error) ? '08' : undefined
  return databaseErrorClasses.find((each) => code.startsWith(each)) ?? 'other'
}

/**
 * A pooler reports everything as SQLSTATE 08P01: outages of its own or of the server, and, with these words, what waiting
 * does not mend: a login or a database that it does not know.
 */
export function isPoolerRefusal(error: unknown): boolean {
  return (
    error instanceof Error &&
    codeOf(error) === '08P01' &&
    /no such (user|database)|authentication failed|not allowed/.test(error.message)
  )
}

/** It has no session left, or takes no more clients. */
function isPoolerFull(error: Error): boolean {
  return codeOf(error) === '08P01' && /query_wait_timeout|no more connections allowed/.test(error.message)
}

/** As /readyz names it. */
export const theDatabase = 'the database'
export const aFreeConnection = 'a free connection to the database'

/**
 * What the database lacks, in the words of /readyz; undefined for any other error. Includes lost connections, SQLSTATE
 * class 53 (a full disk, no memory, no connection left), and unsafe connections.
 */
export function missingOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (error instanceof AppError) return error.missing
  if (asUnsafeConnection(error) instanceof UnsafeConnection) return 'a safe connection to the database'
  const code = codeOf(error)
  if (code === '53100') return 'disk space of the database'
  const isFull = code === '53300' || isPoolerFull(error) || /^timeout exceeded/.test(error.message)
  if (isFull) return aFreeConnection
  if (code.startsWith('53')) return 'resources of the database'
  return isConnectionLoss(error) ? theDatabase : undefined
}

/** Whether the database, and not what reads it, is the cause: its connection is lost or refused, or it reports an error. */
export function isDatabaseFailure(error: unknown): boolean {
  return missingOf(error) !== undefined || (error instanceof Error && /^[0-9A-Z]{5}$/.test(codeOf(error)))
}

/** 503 with Retry-After: a restart of PostgreSQL takes a few seconds. */
export function unavailable(cause: unknown): AppError {
  return new AppError('ERR-UNAVAILABLE', {
    headers: { 'Retry-After': '5' },
    missing: missingOf(cause) ?? theDatabase,
    cause,
  })
}

/** 503 for an outage; any other error unchanged. */
export function unavailableIfMissing(error: unknown): unknown {
  return missingOf(error) === undefined || error instanceof AppError ? error : unavailable(error)
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}
