/**
 * The only reader of the environment. Settings are read once, checked together, and passed down as arguments;
 * limits that are no setting stand below with the reason for each.
 */
import { strict as assert } from 'node:assert'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'

export interface Config {
  host: string
  port: number
  /** Absolute path of the embedded database, the generated key and the demo credentials. */
  dataDir: string
  /** Absent: the embedded database in `dataDir`. */
  databaseUrl: string | undefined
  /** Where exports read, for a replica; the main database where absent. */
  exportDatabaseUrl: string | undefined
  /** 32 bytes under which partner secrets are encrypted. Absent: made and kept in `dataDir`. */
  masterKey: Buffer | undefined
  /** IANA name; the day of the platform timestamp is a day there. */
  timeZone: string
  exportThreads: number
  rateLimit: { requests: number; windowMs: number; concurrent: number }
  logLevel: LogLevel
}

const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/** Where nobody names another. */
export const defaultPort = 8080

/** Every mistake of the environment at once, so that an operator mends them in one go. */
export class ConfigError extends Error {
  constructor(mistakes: string[]) {
    super(
      `The service cannot start with these settings:\n${mistakes.map((mistake) => `  - ${mistake}`).join('\n')}`,
    )
    this.name = 'ConfigError'
  }
}

/** @throws {ConfigError} naming every missing or malformed setting */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const mistakes: string[] = []
  const text = (name: string): string | undefined => env[name]?.trim() || undefined
  const wholeNumber = (name: string, fallback: number, least: number, most: number): number => {
    const value = text(name)
    if (value === undefined) return fallback
    const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN
    if (number >= least && number <= most) return number
    mistakes.push(`${name} must be a whole number from ${least} to ${most}, not "${value}"`)
    return fallback
  }
  const databaseAddress = (name: string): string | undefined => {
    const value = text(name)
    if (value !== undefined && !/^postgres(ql)?:\/\//.test(value))
      mistakes.push(`${name} must be an address of the form postgres://user:password@host:port/database`)
    return value
  }

  const databaseUrl = databaseAddress('DATABASE_URL')
  const masterKeyText = text('MASTER_KEY')
  let masterKey: Buffer | undefined
  if (masterKeyText !== undefined) {
    if (/^[0-9a-f]{64}$/i.test(masterKeyText)) masterKey = Buffer.from(masterKeyText, 'hex')
    else mistakes.push('MASTER_KEY must be 64 hexadecimal digits (make one with: openssl rand -hex 32)')
  } else if (databaseUrl !== undefined) {
    // A key made in a local folder would be lost with the machine, and with it every partner secret.
    mistakes.push('MASTER_KEY is required with DATABASE_URL (make one with: openssl rand -hex 32)')
  }
  const timeZone = text('TIME_ZONE') ?? 'Europe/Paris'
  if (!isTimeZone(timeZone))
    mistakes.push(`TIME_ZONE must be an IANA time zone such as Europe/Paris, not "${timeZone}"`)
  const logLevel = (text('LOG_LEVEL') ?? 'info') as LogLevel
  if (!logLevels.includes(logLevel))
    mistakes.push(`LOG_LEVEL must be one of ${logLevels.join(', ')}, not "${logLevel}"`)

  const config: Config = {
    host: text('HOST') ?? '127.0.0.1',
    port: wholeNumber('PORT', defaultPort, 0, 65535),
    dataDir: resolve(text('DATA_DIR') ?? '.data'),
    databaseUrl,
    exportDatabaseUrl: databaseAddress('EXPORT_DATABASE_URL'),
    masterKey,
    timeZone,
    exportThreads: wholeNumber('EXPORT_THREADS', Math.min(availableParallelism(), 8), 1, 64),
    rateLimit: {
      requests: wholeNumber('RATE_LIMIT_REQUESTS', 20, 1, 1_000_000),
      windowMs: wholeNumber('RATE_LIMIT_WINDOW_MS', 10_000, 100, 3_600_000),
      concurrent: wholeNumber('RATE_LIMIT_CONCURRENT', 10, 1, 1000),
    },
    logLevel,
  }
  if (mistakes.length > 0) throw new ConfigError(mistakes)
  return Object.freeze(config)
}

/** An offset such as +02:00 is none: PostgreSQL reads its sign the other way round. */
function isTimeZone(name: string): boolean {
  try {
    if (!/^[A-Za-z]/.test(name)) return false
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}

/** Limits that are decisions of the code, not of the operator. */
export const limits = {
  /** Bytes a thread renders before it hands them over. Smaller costs messages, larger costs first-byte time. */
  chunkBytes: 256 * 1024,
  /** Bytes of one export between thread and socket. Eight chunks hide the hop; more only feeds a slow client. */
  channelWindowBytes: 8 * 256 * 1024,
  /**
   * Exports one thread runs side by side. Rendering is far faster than a slow client reads, so a thread with one
   * export would mostly wait; each waiting export holds two database connections.
   */
  exportsPerThread: 8,
  /** Exports that may wait for a place before callers are told 503. */
  exportQueueMax: 32,
  /** An export's connection from which the client reads nothing for so long is closed. */
  clientIdleMs: 120_000,
  /** How long a request waits for a database connection before 503. */
  databaseConnectMs: 5_000,
  /** Connections of the main thread to the database; its queries are single-row look-ups. */
  serviceConnectionsMax: 8,
  /** How long SIGTERM waits for running answers. */
  drainMs: 25_000,
  /** A query string of more is refused: no request of this API comes near. */
  urlBytesMax: 16 * 1024,
} as const

assert(
  limits.channelWindowBytes >= 2 * limits.chunkBytes,
  'a window of one chunk stops the thread at each chunk',
)
