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
  /** Where the service is reached from outside, without a slash at the end. Absent: where it listens. */
  publicUrl: string | undefined
  /** Where the files of exports lie. */
  store: FileStore
  /** Files are removed after so many days. */
  fileRetentionDays: number
  /** Webhooks may go to http addresses and into private networks: for development alone. */
  webhookAllowInsecure: boolean
  /** That the tokens of one third party may make in one schema. */
  webhookSubscriptionsMax: number
  logLevel: LogLevel
}

export type FileStore =
  | {
      kind: 'filesystem'
      /** Absolute. */
      folder: string
    }
  | {
      kind: 's3'
      endpoint: string
      publicEndpoint: string
      bucket: string
      region: string
      accessKey: string
      secretKey: string
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

/** Where a service that listens there is reached from its machine: `http://127.0.0.1:8080`. */
export function urlOf(host: string, port: number | string): string {
  const name = ['0.0.0.0', '::'].includes(host) ? 'localhost' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
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
  } else if (databaseUrl !== undefined || text('S3_ENDPOINT') !== undefined) {
    // A key made in a local folder would be lost with the machine, and with it every partner secret.
    const reason = databaseUrl === undefined ? 'S3_ENDPOINT' : 'DATABASE_URL'
    mistakes.push(`MASTER_KEY is required with ${reason} (make one with: openssl rand -hex 32)`)
  }
  const dataDir = resolve(text('DATA_DIR') ?? '.data')
  const host = text('HOST') ?? '127.0.0.1'
  const timeZone = text('TIME_ZONE') ?? 'Europe/Paris'
  if (!isTimeZone(timeZone))
    mistakes.push(`TIME_ZONE must be an IANA time zone such as Europe/Paris, not "${timeZone}"`)
  const logLevel = (text('LOG_LEVEL') ?? 'info') as LogLevel
  if (!logLevels.includes(logLevel))
    mistakes.push(`LOG_LEVEL must be one of ${logLevels.join(', ')}, not "${logLevel}"`)

  const config: Config = {
    host,
    port: wholeNumber('PORT', defaultPort, 0, 65535),
    dataDir,
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
    ...readStore(text, mistakes, { dataDir, host, databaseUrl }),
    fileRetentionDays: wholeNumber('FILE_RETENTION_DAYS', 7, 1, 3650),
    webhookAllowInsecure: readYesOrNo('WEBHOOK_ALLOW_INSECURE', text, mistakes),
    webhookSubscriptionsMax: wholeNumber('WEBHOOK_SUBSCRIPTIONS_MAX', 100, 1, 100_000),
    logLevel,
  }
  if (mistakes.length > 0) throw new ConfigError(mistakes)
  return Object.freeze(config)
}

type ReadText = (name: string) => string | undefined

/** No where it is not set. */
function readYesOrNo(name: string, text: ReadText, mistakes: string[]): boolean {
  const value = text(name) ?? 'false'
  if (!['true', 'false', '1', '0'].includes(value))
    mistakes.push(`${name} must be true or false, not "${value}"`)
  return value === 'true' || value === '1'
}

/** S3 where S3_ENDPOINT is set, `dataDir/files` otherwise. */
function readStore(
  text: ReadText,
  mistakes: string[],
  { dataDir, host, databaseUrl }: Pick<Config, 'dataDir' | 'host' | 'databaseUrl'>,
): Pick<Config, 'store' | 'publicUrl'> {
  const publicUrl = webAddress('PUBLIC_URL', text, mistakes)
  const endpoint = webAddress('S3_ENDPOINT', text, mistakes)
  const publicEndpoint = webAddress('S3_PUBLIC_ENDPOINT', text, mistakes)
  if (text('S3_ENDPOINT') === undefined) {
    // Half a configuration would quietly put the files on the local disk.
    const others = ['S3_PUBLIC_ENDPOINT', 'S3_BUCKET', 'S3_REGION', 'S3_ACCESS_KEY', 'S3_SECRET_KEY']
    const stray = others.filter((name) => text(name) !== undefined)
    if (stray.length > 0)
      mistakes.push(`S3_ENDPOINT is required with ${stray.join(', ')} (such as https://s3.example.com)`)
    // Links name this service, and an address to listen on all interfaces is none to connect to.
    if (databaseUrl !== undefined && publicUrl === undefined && ['0.0.0.0', '::'].includes(host))
      mistakes.push(
        `PUBLIC_URL is required with DATABASE_URL and HOST ${host}: the address at which partners download ` +
          'files (or store them elsewhere with S3_ENDPOINT)',
      )
    return { publicUrl, store: { kind: 'filesystem', folder: resolve(dataDir, 'files') } }
  }
  const required = (name: string): string => {
    const value = text(name)
    if (value === undefined) mistakes.push(`${name} is required with S3_ENDPOINT`)
    return value ?? ''
  }
  const bucket = required('S3_BUCKET')
  if (bucket !== '' && !/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket))
    mistakes.push(`S3_BUCKET must be 3 to 63 lower-case letters, digits, dots and dashes, not "${bucket}"`)
  const store: FileStore = {
    kind: 's3',
    endpoint: endpoint ?? '',
    publicEndpoint: publicEndpoint ?? endpoint ?? '',
    bucket,
    region: text('S3_REGION') ?? 'us-east-1',
    accessKey: required('S3_ACCESS_KEY'),
    secretKey: required('S3_SECRET_KEY'),
  }
  return { publicUrl, store }
}

/** `http://host:port` or `https://...`; neither S3 nor the routes of the service live below a path. */
function webAddress(name: string, text: ReadText, mistakes: string[]): string | undefined {
  const value = text(name)
  if (value === undefined) return undefined
  const url = URL.canParse(value) ? new URL(value) : undefined
  const isBare = url && /^https?:$/.test(url.protocol) && url.pathname === '/' && !url.search && !url.username
  if (isBare) return url.origin
  mistakes.push(`${name} must be an address of the form https://host or http://host:port, nothing behind it`)
  return undefined
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

/** Limits that are decisions of the code, not of the operator. How long it waits for others stands in timing.ts. */
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
  /** How long a request waits for a database connection before 503. */
  databaseConnectMs: 5_000,
  /** How long a process waits for another one that migrates. A first migration takes two seconds. */
  migrationLockMs: 30_000,
  /** Connections of the main thread to the database; its queries are single-row look-ups. */
  serviceConnectionsMax: 8,
  /** A further signal within it is an echo of the first: npm passes it on in milliseconds, on a busy machine later. */
  signalEchoMs: 2_000,
  /** One part of an upload to S3, which allows 10,000 of at least 5 MiB: files of up to 80 GB. */
  storePartBytes: 8 * 1024 * 1024,
  /** Parts on their way at once, each with a buffer of its own. A fourth gained nothing on one machine. */
  storePartsInFlight: 3,
  /** How long the address of a file is good (contract, section 3). */
  fileLinkSeconds: 3600,
  /** How often files and rows past their time are looked for. */
  retentionEveryMs: 3_600_000,
  /** A complete file that no export has named for so long is what an attempt left that died (exports/leftovers.ts). */
  orphanAgeMs: 3_600_000,
  /** Unfinished writes of that age belong to no living attempt: none may take longer than six hours. */
  unfinishedAgeMs: 24 * 3_600_000,
  /** For so many days after its file is gone an export is said to have expired; then it is not known any more. */
  expiredDays: 30,
  /** Events in one request to a subscriber (contract, section 7). */
  deliveryEventsMax: 100,
  /** Bytes of such a request, unless one event alone has more: Express takes bodies of up to 100 KiB by default. */
  deliveryBytesMax: 90 * 1024,
  /** Of an answer to a delivery this much is kept, for staff to read. */
  deliveryAnswerBytes: 4 * 1024,
  /** Of a longer answer no more is read, and the connection is closed: nobody needs it, and it may never end. */
  deliveryAnswerBytesMax: 64 * 1024,
  /** Retries come up to this share later than the table says (contract, section 7). */
  deliveryJitter: 0.1,
  /** Without one success for so long a subscription is disabled (contract, section 7). */
  subscriptionFailingMsMax: 5 * 24 * 3_600_000,
  /**
   * Subscriptions that one process serves at once: each a socket, and a body of up to `deliveryBytesMax`. They are shared
   * by third party (`webhooks/slots.ts`).
   */
  deliveriesAtOnceMax: 256,
  /**
   * Subscriptions of one third party that a search examines, at some 40 microseconds each on a busy machine: as many as it may make in a
   * schema, unless the operator allows more.
   */
  searchSubscriptionsMax: 100,
  /** A third party with this many waiting for slots is not searched: half of what one search may find. */
  searchWaitingMax: 50,
  /** Connections of the dispatcher beside the one that holds its locks; its transactions take a few milliseconds. */
  deliveryConnectionsMax: 4,
  /** Contract, section 1. */
  bodyBytesMax: 64 * 1024,
  /**
   * A connection to a subscriber: name, address, TLS. Half the time that a delivery has, so that one which connects
   * late still has time to be answered.
   */
  webhookConnectMs: 5_000,
  /**
   * All questions to name servers about a subscriber's name, and one of them. Where one of the two kinds of address is
   * never answered, time is left to connect to the other.
   */
  webhookResolveMs: 3_000,
  webhookResolveTryMs: 2_000,
  /**
   * How long events, and deliveries that have ended, are kept. Retries go on for three days and a subscription without
   * a success for five is disabled, so that staff have weeks to find out and to replay what was missed.
   */
  eventRetentionDays: 30,
  /** A URL of more is refused: no request of this API comes near. */
  urlBytesMax: 16 * 1024,
} as const

assert(
  limits.channelWindowBytes >= 2 * limits.chunkBytes,
  'a window of one chunk stops the thread at each chunk',
)
