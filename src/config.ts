/**
 * The only code that reads the environment. Settings are read once, checked together and passed down as arguments.
 * Limits that are not settings are below, each with its reason.
 */
import { strict as assert } from 'node:assert'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { deliveryBytesMax, deliveryEventsMax } from '../packages/contract/src/webhook-delivery.ts'
import { readHostNames } from './listen.ts'
import { isTimeZone, type ReadText, readKey, readYesOrNo, settingsOf, webAddress } from './settings.ts'
import { tracesShareOf } from './traces-share.ts'

export type Config = ReturnType<typeof readConfig>

export type FileStore =
  | {
      kind: 'filesystem'
      /** Absolute path of the folder. */
      folder: string
    }
  | {
      kind: 's3'
      endpoint: string
      /** The endpoint from which partners download; the signature of a link covers its host. */
      publicEndpoint: string
      bucket: string
      region: string
      accessKey: string
      secretKey: string
    }

const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/** Default of PORT. The demo may choose another port: it takes the next free one. */
export const defaultPort = 8080

/** Default of EXPORTS_PER_THREAD. */
export const defaultExportsPerThread = 8

/** Reports every mistake of the environment at once, so that an operator can correct them together. */
export class ConfigError extends Error {
  constructor(mistakes: string[]) {
    super(
      `The service cannot start with these settings:\n${mistakes.map((mistake) => `  - ${mistake}`).join('\n')}`,
    )
    this.name = 'ConfigError'
  }
}

/** Lowest and highest limits on partners' requests, set for all by a setting or for one partner by staff. */
export const rateBounds = {
  requests: [1, 1_000_000],
  windowMs: [100, 3_600_000],
  concurrent: [1, 1_000],
} as const

/** Whether the settings name a database server of the operator. */
export const namesDatabase = (env = process.env): boolean => Boolean(env['DATABASE_URL'])

/** @throws {ConfigError} naming every missing or malformed setting */
export function readConfig(env: NodeJS.ProcessEnv = process.env) {
  const mistakes: string[] = []
  const { text, mistyped } = settingsOf(env)
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
  const directDatabaseUrl = databaseAddress('DIRECT_DATABASE_URL')
  if (directDatabaseUrl !== undefined && databaseUrl === undefined)
    mistakes.push('DATABASE_URL is required with DIRECT_DATABASE_URL')
  /**
   * Address of a listener; undefined if its port is not set. Partners do not call these listeners, so the host is the
   * loopback address by default.
   */
  const listener = (name: string): { host: string; port: number } | undefined => {
    const host = text(`${name}_HOST`) ?? '127.0.0.1'
    const isSet = text(`${name}_PORT`) !== undefined
    return isSet ? { host, port: wholeNumber(`${name}_PORT`, 0, 0, 65535) } : undefined
  }
  const metrics = listener('METRICS')
  const allowedHosts = readHostNames('METRICS_ALLOWED_HOSTS', text, mistakes)
  if (text('MASTER_KEY') === undefined && (databaseUrl !== undefined || text('S3_ENDPOINT') !== undefined)) {
    // A key in a local folder would be lost with the machine. Without the key, no partner secret could be decrypted.
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

  const config = {
    host,
    port: wholeNumber('PORT', defaultPort, 0, 65535),
    /** Absolute path of the folder for the embedded database, the generated key and the demo credentials. */
    dataDir,
    /** Address of the database; if absent, the embedded one in `dataDir` is used. */
    databaseUrl,
    /** Address of the server itself, if `databaseUrl` leads through a pooler; by default `databaseUrl`. */
    directDatabaseUrl,
    /** Address of the database that exports read, such as a replica; by default the main database. */
    exportDatabaseUrl: databaseAddress('EXPORT_DATABASE_URL'),
    /**
     * Two keys of 32 bytes: the key that encrypts secrets (if absent, a key is kept in `dataDir`), and the previous key
     * while keys are rotated.
     */
    masterKey: readKey('MASTER_KEY', text, mistakes),
    formerMasterKey: readKey('FORMER_MASTER_KEY', text, mistakes),
    /** The platform's time zone, an IANA name. Timestamps become days in it. */
    timeZone,
    exportThreads: wholeNumber('EXPORT_THREADS', Math.min(availableParallelism(), 8), 1, 64),
    /**
     * Exports that one thread runs at once, each with two connections. A thread renders far faster than a slow client
     * reads, so with only one export it would mostly wait.
     */
    exportsPerThread: wholeNumber('EXPORTS_PER_THREAD', defaultExportsPerThread, 1, 64),
    rateLimit: {
      requests: wholeNumber('RATE_LIMIT_REQUESTS', 20, ...rateBounds.requests),
      windowMs: wholeNumber('RATE_LIMIT_WINDOW_MS', 10_000, ...rateBounds.windowMs),
      concurrent: wholeNumber('RATE_LIMIT_CONCURRENT', 10, ...rateBounds.concurrent),
    },
    /**
     * `store`: where the files of exports are stored. `publicUrl`: the public address of the service, without a slash
     * at its end; by default the address where it listens.
     */
    ...readStore(text, mistakes, { dataDir, host, databaseUrl }),
    /** Days until the files of exports are removed. */
    fileRetentionDays: wholeNumber('FILE_RETENTION_DAYS', 7, 1, 3650),
    /** Days for which changes of ledgers are kept. */
    changesRetentionDays: wholeNumber('CHANGES_RETENTION_DAYS', 400, 1, 3650),
    /** Allows webhooks to http addresses and private networks; only for development. */
    webhookAllowInsecure: readYesOrNo('WEBHOOK_ALLOW_INSECURE', text, mistakes),
    /** Subscriptions that the tokens of one third party may create in one schema. */
    webhookSubscriptionsMax: wholeNumber('WEBHOOK_SUBSCRIPTIONS_MAX', 100, 1, 100_000),
    /** Months for which the audit is kept. */
    auditRetentionMonths: wholeNumber('AUDIT_RETENTION_MONTHS', 12, 1, 1200),
    /** The address of the metrics; if absent, they are not served. */
    metrics: metrics && { ...metrics, allowedHosts },
    /**
     * The address to which traces and metrics are sent by OTLP over HTTP, such as `http://collector:4318`; if absent,
     * they are not sent.
     */
    otlpEndpoint: webAddress('OTEL_EXPORTER_OTLP_ENDPOINT', text, mistakes),
    /** Which share of the traces that begin in this service is recorded, 0 to 1. */
    tracesShare: tracesShareOf(text('OTEL_TRACES_SAMPLER'), text('OTEL_TRACES_SAMPLER_ARG'), mistakes),
    /** The address where staff sign in with a browser; if absent, the console does not run. */
    console: listener('CONSOLE'),
    /** Seconds after SIGTERM for which requests are still answered, so that a balancer can turn elsewhere. */
    drainSeconds: wholeNumber('DRAIN_SECONDS', databaseUrl === undefined ? 0 : 10, 0, 600),
    /** Seconds after `drainSeconds` for requests that still run. */
    stopSeconds: wholeNumber('STOP_SECONDS', 25, 0, 3600),
    logLevel,
    /** Variables whose names are almost those of settings. */
    mistyped: mistyped(),
  }
  if (mistakes.length > 0) throw new ConfigError(mistakes)
  return Object.freeze(config)
}

/** The store is S3 if S3_ENDPOINT is set, otherwise the folder `dataDir/files`. */
function readStore(
  text: ReadText,
  mistakes: string[],
  { dataDir, host, databaseUrl }: { dataDir: string; host: string; databaseUrl: string | undefined },
): { publicUrl: string | undefined; store: FileStore } {
  const publicUrl = webAddress('PUBLIC_URL', text, mistakes)
  const endpoint = webAddress('S3_ENDPOINT', text, mistakes)
  const publicEndpoint = webAddress('S3_PUBLIC_ENDPOINT', text, mistakes)
  if (text('S3_ENDPOINT') === undefined) {
    // With only some of the S3 settings, files would silently go to the local disk.
    const others = ['S3_PUBLIC_ENDPOINT', 'S3_BUCKET', 'S3_REGION', 'S3_ACCESS_KEY', 'S3_SECRET_KEY']
    const stray = others.filter((name) => text(name) !== undefined)
    if (stray.length > 0)
      mistakes.push(`S3_ENDPOINT is required with ${stray.join(', ')} (such as https://s3.example.com)`)
    // Links contain the address of this service. Clients cannot connect to an address that only means all interfaces.
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

/** Limits that operators do not set. Time limits that tests shorten are in timing.ts. */
export const limits = {
  /**
   * Bytes that a thread renders before it sends them. Smaller chunks cost more messages, larger ones delay the first
   * byte.
   */
  chunkBytes: 256 * 1024,
  /**
   * Bytes of one export that may lie between thread and socket. Eight chunks hide the latency between threads; more
   * would only fill memory for a slow client.
   */
  channelWindowBytes: 8 * 256 * 1024,
  /** Exports that may wait for a free thread; any more get 503. */
  exportQueueMax: 32,
  /** How long an export waits for a free thread, and then for both of its connections, before it gets 503. */
  exportWaitMs: 15_000,
  /**
   * How long an export holds one of its two connections while it waits for the other. It then gives up both: a pooler
   * that is too small may have given all its sessions to exports that hold one each.
   */
  halfSnapshotMs: 500,
  /** How long a request waits for a database connection before it gets 503. */
  databaseConnectMs: 5_000,
  /** How long a process waits while another one migrates. Migrating a new database takes less than a second. */
  migrationLockMs: 30_000,
  /**
   * How long a migration waits for the lock of a table; requests that need the table wait behind it. After
   * `migrationPauseMs` the migration tries again.
   */
  migrationTableLockMs: 2_000,
  migrationPauseMs: 1_000,
  /** Connections of the main thread to the database. It only looks up single rows. */
  serviceConnectionsMax: 8,
  /**
   * Connections to PostgreSQL itself for deliveries and the lock of a sweep; their transactions take a few
   * milliseconds. Five more serve the request slots, the notifications, the dispatcher's locks, the queue and the
   * queue's listening: a process has at most eight, and with a console `consoleConnectionsMax` more.
   */
  directConnectionsMax: 3,
  /**
   * A second signal within this time is an echo of the first: npm passes a signal on within milliseconds, on a busy
   * machine later.
   */
  signalEchoMs: 2_000,
  /** Bytes of one part of an upload. S3 allows 10,000 parts of at least 5 MiB, so a file may have 80 GB. */
  storePartBytes: 8 * 1024 * 1024,
  /** Parts of an upload that are sent at once, each with its own buffer. A fourth brought no gain on one machine. */
  storePartsInFlight: 3,
  /** How long the link to a file is valid (docs/spec/exports.md#download). */
  fileLinkSeconds: 3600,
  /** How often retention searches for expired files and rows. */
  retentionEveryMs: 3_600_000,
  /**
   * Age from which a complete file that no export names counts as an orphan, left by a dead attempt
   * (jobs/retention/leftovers.ts).
   */
  orphanAgeMs: 3_600_000,
  /** Age from which an unfinished write belongs to no living attempt: an attempt may take six hours at most. */
  unfinishedAgeMs: 24 * 3_600_000,
  /** Days for which an export is reported as expired after its file was removed. Its row is then deleted. */
  expiredDays: 30,
  /** Most events in one request to a subscriber (docs/spec/webhooks.md#deliveries). */
  deliveryEventsMax,
  /**
   * Most bytes of one request to a subscriber. A request with a single event may have more. By default, Express accepts
   * bodies of up to 100 KiB.
   */
  deliveryBytesMax,
  /** Most bytes of a response to a delivery that are stored, for staff. */
  deliveryAnswerBytes: 4 * 1024,
  /** Most bytes of a response to a delivery that the subscription's owner is shown. */
  shownAnswerBytes: 1024,
  /** Most attempts of a delivery that the subscription's owner is shown. Only a replayed delivery may have more. */
  shownAttemptsMax: 20,
  /** Most events that an owner may ask to replay at once: about ten deliveries, whose bodies are stored at once. */
  replayedEventsMax: 1_000,
  /** Replayed deliveries of a subscription that may wait. With this many, its owner cannot replay more. */
  pendingReplaysMax: 100,
  /** Most bytes of a response that are read before the connection is closed: the response may never end. */
  deliveryAnswerBytesMax: 64 * 1024,
  /** Share of its delay by which a retry may come later than the table says (docs/spec/webhooks.md#retries). */
  deliveryJitter: 0.1,
  /** A subscription without success for this long is disabled (docs/spec/webhooks.md#disabled-subscriptions). */
  subscriptionFailingMsMax: 5 * 24 * 3_600_000,
  /**
   * Subscriptions that one process serves at once, each with a socket and a body of up to `deliveryBytesMax`. Third
   * parties share these slots (`webhooks/dispatch/slots.ts`).
   */
  deliveriesAtOnceMax: 256,
  /**
   * Most subscriptions of one third party that a search examines, at about 40 microseconds each on a busy machine. It
   * is also the default limit of subscriptions per third party and schema.
   */
  searchSubscriptionsMax: 100,
  /** A third party with this many subscriptions waiting for slots is not searched: half of what a search may find. */
  searchWaitingMax: 50,
  /** How long rows of the audit are collected. Each is appended within a second of its request. */
  auditAppendMs: 500,
  /**
   * Rows of the audit that wait in memory while the database is away, at a kilobyte each. An answer of many ledgers may
   * add 10,000 at once. Any more are only counted.
   */
  auditRowsMax: 30_000,
  /** Most ids in the error about a name that several entries have: enough to choose from, short enough for an error. */
  ambiguousEntriesMax: 100,
  /** Most mistakes that the error about a body names. A body of 8 MiB may have 700,000: an answer of 40 MB. */
  issuesMax: 100,
  /** Most bytes of a body (docs/spec/interface.md#size-and-time-limits). */
  bodyBytesMax: 64 * 1024,
  /** Paths with larger bodies. A body names thousands of folders, and may state what the caller already has of each. */
  largeBody: {
    paths: ['/api/v1/mad/ledgers/changes', '/api/v1/mad/ledgers/blocks'] as readonly string[],
    bytesMax: 8 * 1024 * 1024,
  },
  /** Answers of many ledgers that one token may have running at once. */
  ledgersAtOnceMax: 2,
  /**
   * Limit for connecting to a subscriber: DNS, TCP and TLS. Half the time of a delivery, so that a late connection
   * leaves time for the response.
   */
  webhookConnectMs: 5_000,
  /**
   * Time limits for all DNS queries of a subscriber's name, and for a single query. If the query for one kind of
   * address is never answered, there is time left to connect to an address of the other kind.
   */
  webhookResolveMs: 3_000,
  webhookResolveTryMs: 2_000,
  /**
   * How long events and ended deliveries are kept. Retries take three days, and a subscription without a success for
   * five days is disabled, so staff have weeks to notice and replay.
   */
  eventRetentionDays: 30,
  /**
   * How long a replaced secret of a subscription still signs beside the new one
   * (docs/spec/webhooks.md#signing-secrets).
   */
  signingSecretKeptMs: 24 * 3_600_000,
  /** Secrets that may sign at once: enough for three rotations in 24 hours. Each adds to every delivery's headers. */
  signingSecretsMax: 4,
  /** Least time between two pings of one subscription. */
  pingEveryMs: 1_000,
  /** Full days for which the log of changes keeps every row. Older rows are compacted, so that the log stays small. */
  changesExactDays: 7,
  /** Requests of a process that may wait for a change at once (`db/notifications.ts`); any more get 503. */
  waitingRequestsMax: 1_000,
  /** Connections that woken requests share to read what has changed. */
  waitingReadsMax: 2,
  /** Least time between two wake-ups of a token that waits for a list of ledgers: a list of 10,000 is a megabyte. */
  listReadEveryMs: 1_000,
  /** Most bytes of a page of events. A page may be larger if it has a single event. */
  eventPageBytesMax: 4 * 1024 * 1024,
  /** How long a session of the console lasts: a working day. */
  consoleSessionMs: 12 * 3_600_000,
  /**
   * Sign-ins from one address that may fail within `consoleAttemptsMs`. A key cannot be guessed, but each attempt is
   * recorded.
   */
  consoleAttemptsMax: 10,
  consoleAttemptsMs: 60_000,
  /** Pages of the console that one process keeps up to date at once; any more have to be reloaded. */
  consoleViewersMax: 16,
  /** Connections of the console to PostgreSQL itself: for what pages show, and for sampling delays all the time. */
  consoleConnectionsMax: 2,
  /** Most bytes of a URL; a longer one is refused. No request of this API needs nearly as much. */
  urlBytesMax: 16 * 1024,
} as const

assert(
  limits.channelWindowBytes >= 2 * limits.chunkBytes,
  'with a window of one chunk the thread would stop after each chunk',
)
