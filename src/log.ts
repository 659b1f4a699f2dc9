/**
 * Writes JSON lines to standard output: `{"at","level","event", ...fields}`. The kinds of events are a closed table, so
 * that an operator can build alerts on them. Headers and bodies are never logged, and anything shaped like a token or a
 * secret is masked in every line, whatever its source.
 *
 * We use no logging library because the service neither formats, rotates nor ships logs. The container's log collector
 * does.
 */
import type { LogLevel } from './config.ts'

interface DeliveryFields {
  schemaId: string
  subscriptionId: string
  deliveryId: string
  attempt: number
  /** Null if there was no response. */
  status: number | null
  latencyMs: number
}

interface ExportFields {
  schemaId: string
  exportId: string
  attempt: number
}

/**
 * Why an export was requeued. `stopping`: the process is stopping. `lost`: the claim or its queue entry is lost, or
 * another server took the place of the database. `noThread`: all threads are busy. `noConnections`: all connections are
 * taken. `databaseAway`: the database is away.
 */
export type RequeueReason = 'stopping' | 'lost' | 'noThread' | 'noConnections' | 'databaseAway'

interface Logged<Fields> {
  level: Exclude<LogLevel, 'silent'>
  /** Never set: it only carries the type of the fields. */
  fields?: Fields
}

const debug = <Fields>(): Logged<Fields> => ({ level: 'debug' })
const info = <Fields>(): Logged<Fields> => ({ level: 'info' })
const warn = <Fields>(): Logged<Fields> => ({ level: 'warn' })
const error = <Fields>(): Logged<Fields> => ({ level: 'error' })

/** The level and the fields of each line. */
const logEvents = {
  /** The database runs on a server that took the place of another. Cursors and ETags from before that are refused. */
  'epoch.began': warn<{ epoch: number; former: number; began: string }>(),
  /** The server of DATABASE_URL could not be opened and is being retried. Logged at most every ten seconds. */
  'service.waiting': error<{ error: unknown }>(),
  /** A variable of the environment has no effect, and its name is almost that of a setting. */
  'setting.unknown': warn<{ name: string; meant: string }>(),
  'service.listening': info<{ url: string; pid: number }>(),
  /** Each step of migrating the database. */
  'migration.began': info<{ doing: string; file: string }>(),
  'migration.ended': info<{ doing: string; file: string; ms: number }>(),
  /** The start waits for something else before it opens the database. */
  'database.waiting': warn<{ doing: string }>(),
  'service.stopping': info<{ signal: string }>(),
  /**
   * Answers that were cut off because their time was over: how many, and their paths. `streams` counts the streams of
   * ledgers among them that had begun, and `bytes` what those had sent.
   */
  'service.cut': warn<{ answers: number; paths: string[]; streams: number; bytes: number }>(),
  'service.stopped': info<{ drained: boolean }>(),
  /** One per request, when its response has ended or was cut off. */
  'request.ended': info<{
    requestId: string
    method: string
    /** The path without the query string. */
    path: string
    /** Absent if the client disconnected before there was a response. */
    status?: number
    /** Error code of the response. */
    code?: string
    ms: number
    /** For a streamed export that was sent completely: its items, and its bytes before compression. */
    rows?: number
    bytes?: number
    /** The client disconnected, or the response failed before its end. */
    cutOff?: true
    tokenId?: string
    schemaId?: string
    folderId?: string
  }>(),
  /** The request was not HTTP or was too large. It reached no route. */
  'request.refused': info<{ requestId: string; code: string }>(),
  /** A fault of the service or of a dependency; the caller got ERR-INTERNAL or ERR-UNAVAILABLE. */
  'request.failed': error<{ requestId: string; code: string; error: unknown }>(),
  /** A streamed export failed after its first byte: the client saw a broken transfer. */
  'stream.broken': error<{ requestId: string; error: unknown }>(),
  /**
   * In an answer of many ledgers, one was refused because of a fault of the service or of a dependency; the others went
   * on.
   */
  'ledger.failed': error<{ requestId: string; folderId: string; code: string; error: unknown }>(),
  /** The digests of an exercice could not be stored. The next request for them computes them again. */
  'blocks.notKept': warn<{ requestId: string; error: unknown }>(),
  /** A stored file failed after its first byte: the client saw a broken transfer. */
  'file.broken': error<{ requestId: string; error: unknown }>(),
  /**
   * Steps of a full export: it was claimed, interrupted, requeued, lost to another process or cancelled, or finished.
   */
  'export.started': info<ExportFields>(),
  'export.interrupted': warn<ExportFields & { error: unknown }>(),
  'export.requeued': info<ExportFields & { because: RequeueReason }>(),
  'export.lost': warn<ExportFields>(),
  /** `bytes` is before compression, `fileBytes` as stored. */
  'export.done': info<ExportFields & { rows: number; bytes: number; fileBytes: number; ms: number }>(),
  /** These codes of analytic axes were left out, because a TRA file has no column for them. */
  'export.axesLeftOut': warn<ExportFields & { axes: string[] }>(),
  'export.failed': error<ExportFields & { requestId: string; cause: string; error: unknown }>(),
  /** The export was given up: the processes of all its attempts died. */
  'export.abandoned': error<{ schemaId: string; exportId: string; requestId: string }>(),
  /** Files that killed attempts left could not be removed. Retention will remove them. */
  'export.notCleared': warn<{ schemaId: string; exportId: string; error: unknown }>(),
  /**
   * An export thread has left the replica of EXPORT_DATABASE_URL and reads the main database for now, or has returned
   * to it.
   */
  'replica.left': warn<{ threadId: number; reason: string; message: string }>(),
  'replica.regained': info<{ threadId: number }>(),
  /** The queue of full exports could not be polled. Logged at most every ten seconds. */
  'queue.error': warn<{ error: unknown }>(),
  /** Expired files and rows were removed, or the removal failed and will be retried. */
  'retention.swept': info<Record<'files' | 'rows' | 'orphans' | 'unfinished' | 'forgotten', number>>(),
  'retention.eventsSwept': info<{ events: number; deliveries: number }>(),
  /** Old rows of the log of changes were deleted, or merged with others. */
  'retention.changesSwept': info<{ forgotten: number; compacted: number }>(),
  'retention.error': warn<{ error: unknown }>(),
  /** The connection that holds the slots of running requests was lost, or is back. */
  'requestSlots.lost': warn<{ error: unknown }>(),
  'requestSlots.regained': info<{ slots: number; missing: number }>(),
  /** The connection for notifications was lost. Once it is open again, all waiting requests compare again. */
  'notifications.lost': warn<{ error: unknown }>(),
  /** A delivery succeeded, will be retried, or has failed until staff replay it. */
  'delivery.sent': debug<DeliveryFields>(),
  'delivery.refused': warn<DeliveryFields & { error: string | null }>(),
  'delivery.failed': error<DeliveryFields & { error: string | null }>(),
  /** The dispatcher disabled the subscription: its receiver is gone, or has accepted nothing for days. */
  'subscription.disabled': error<{ subscriptionId: string; reason: string }>(),
  /** Delivering to one subscription failed because of a bug. It is retried. */
  'subscription.error': error<{ subscriptionId: string; error: unknown }>(),
  /** The database could not be polled for deliveries. Logged at most every ten seconds. */
  'dispatcher.error': warn<{ error: unknown }>(),
  /** Metrics are served at this address. */
  'metrics.listening': info<{ url: string }>(),
  /** The collector accepted no metrics or no traces. Logged once until it accepts some. */
  'telemetry.notSent': warn<{ signal: 'metrics' | 'traces'; error: unknown }>(),
  'console.listening': info<{ url: string }>(),
  /** A page or act of the console failed because of a bug here or in a dependency. */
  'console.failed': error<{ path: string; error: unknown }>(),
  /** Rows of the audit could not be appended and wait in memory. Logged at most every ten seconds. */
  'audit.waiting': warn<{ rows: number; error: unknown }>(),
  /** The process stopped before the database accepted these rows of the audit. */
  'audit.lost': error<{ rows: number }>(),
  /** Old rows of the audit were deleted. */
  'retention.auditSwept': info<{ rows: number }>(),
  /** The certificate of one of our addresses could not be read. Logged again only after it has been read once. */
  'certificate.unread': warn<{ url: string; error: unknown }>(),
  'log.dropped': warn<{ lines: number }>(),
}

export type LogEvents = { [Kind in keyof typeof logEvents]: NonNullable<(typeof logEvents)[Kind]['fields']> }

const ranks: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3, silent: 4 }

export type Log = <Kind extends keyof LogEvents>(event: Kind, fields: LogEvents[Kind]) => void

/** Bytes that are buffered for a slow reader. Lines beyond that are dropped and counted rather than kept in memory. */
const backlogBytesMax = 1024 * 1024

/** @param out standard output of the process; tests pass another stream */
export function createLog(level: LogLevel, out: NodeJS.WritableStream = process.stdout): Log {
  let dropped = 0
  let closed = false
  // A closed log collector (EPIPE) must not take the service down.
  out.on('error', () => {
    closed = true
  })
  const write: Log = (event, fields) => {
    if (closed || ranks[logEvents[event].level] < ranks[level]) return
    if ('writableLength' in out && Number(out.writableLength) > backlogBytesMax) {
      dropped += 1
      return
    }
    out.write(line(event, fields))
    if (dropped > 0 && event !== 'log.dropped') {
      const lines = dropped
      dropped = 0
      write('log.dropped', { lines })
    }
  }
  return write
}

function line(event: keyof LogEvents, fields: object): string {
  const record = { at: new Date().toISOString(), level: logEvents[event].level, event, ...fields }
  const text = JSON.stringify(record, (_key, value) => (value instanceof Error ? describe(value) : value))
  return `${withoutSecrets(text)}\n`
}

/** Masks every token and secret in a text. Use it for any text that quotes a caller. */
export function withoutSecrets(text: string): string {
  return text
    .replace(/glv_(api|firm|secret|console|session)_[\w-]+/g, 'glv_$1_***')
    .replace(/whsec_[A-Za-z0-9+/=%]+/g, 'whsec_***')
}

/** The parts of an error to log. Leaves out other properties, because database errors quote rows in them. */
function describe(error: Error): object {
  return {
    message: error.message,
    stack: error.stack,
    ...('code' in error ? { code: error.code } : {}),
    ...(error.cause instanceof Error ? { cause: describe(error.cause) } : {}),
  }
}
