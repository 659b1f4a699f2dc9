/**
 * What the process reports, as JSON lines on standard output: `{"at","level","event", ...fields}`. The kinds of event
 * are a closed table, so that an operator can build alerts on them. Headers and bodies are never logged, and what is
 * shaped like a token or a secret is blotted out of every line, wherever it came from.
 *
 * Own code rather than a library: nothing here formats, rotates or ships. The collector of the container does.
 */
import type { LogLevel } from './config.ts'

interface DeliveryFields {
  schemaId: string
  subscriptionId: string
  deliveryId: string
  attempt: number
  /** Null: there was no answer. */
  status: number | null
  latencyMs: number
}

interface ExportFields {
  schemaId: string
  exportId: string
  attempt: number
}

/** The process stops; the export's entry in the queue is gone; the threads have too much to do. */
export type RequeueReason = 'stopping' | 'lost' | 'noThread'

export interface LogEvents {
  /** The server of DATABASE_URL could not be opened, and is tried again; told every ten seconds at the most. */
  'service.waiting': { error: unknown }
  'service.listening': { url: string; pid: number }
  'service.stopping': { signal: string }
  'service.stopped': { drained: boolean }
  /** One per request, when its answer has ended or was cut off. */
  'request.ended': {
    requestId: string
    method: string
    /** Without the query. */
    path: string
    /** Absent where the client went away before there was an answer. */
    status?: number
    /** Error code of the answer. */
    code?: string
    ms: number
    /** The client went away, or the answer failed, before its end. */
    cutOff?: true
    tokenId?: string
    schemaId?: string
    folderId?: string
  }
  /** It was no HTTP, or too large, and never reached a route. */
  'request.refused': { requestId: string; code: string }
  /** A fault of the service, or of something it needs; the caller was told ERR-INTERNAL or ERR-UNAVAILABLE. */
  'request.failed': { requestId: string; code: string; error: unknown }
  /** A streamed export that went out whole; `rows` are its items, `bytes` before compression. */
  'stream.sent': { requestId: string; rows: number; bytes: number; ms: number }
  /** A streamed export that failed behind its first byte: the client saw a broken transfer. */
  'stream.broken': { requestId: string; error: unknown }
  /** A stored file that failed behind its first byte: the client saw a broken transfer. */
  'file.broken': { requestId: string; error: unknown }
  /** A full export: a process took it, was interrupted, gave it back, lost it to another one or to staff, ended it. */
  'export.started': ExportFields
  'export.interrupted': ExportFields & { error: unknown }
  'export.requeued': ExportFields & { because: RequeueReason }
  'export.lost': ExportFields
  'export.done': ExportFields & { rows: number; bytes: number; ms: number }
  /** Codes of analytic axes that a TRA file has no place for. */
  'export.axesLeftOut': ExportFields & { axes: string[] }
  'export.failed': ExportFields & { requestId: string; cause: string; error: unknown }
  /** Its processes died in all its attempts. */
  'export.abandoned': { schemaId: string; exportId: string; requestId: string }
  /** What killed attempts left of it in the store could not be removed, and is left to the sweep. */
  'export.notCleared': { schemaId: string; exportId: string; error: unknown }
  /** The queue of full exports could not be asked; told every ten seconds at the most. */
  'queue.error': { error: unknown }
  /** Files and rows past their time were removed; or could not be, and will be. */
  'retention.swept': { files: number; rows: number; orphans: number; unfinished: number; forgotten: number }
  'retention.eventsSwept': { events: number; deliveries: number }
  'retention.error': { error: unknown }
  /** The connection that holds the places of running requests was lost, or is there again. */
  'requestSlots.lost': { error: unknown }
  'requestSlots.regained': { slots: number; missing: number }
  /** A delivery to a subscriber: it arrived, will be tried again, or has failed and waits for staff to replay it. */
  'delivery.sent': DeliveryFields
  'delivery.refused': DeliveryFields & { error: string | null }
  'delivery.failed': DeliveryFields & { error: string | null }
  /** By the dispatcher: its receiver is gone, or has answered nothing well for days. */
  'subscription.disabled': { subscriptionId: string; reason: string }
  /** Sending to one subscription failed by a fault of ours, and is begun anew. */
  'subscription.error': { subscriptionId: string; error: unknown }
  /** The database could not be asked for deliveries; told every ten seconds at the most. */
  'dispatcher.error': { error: unknown }
  'log.dropped': { lines: number }
}

const levels: Record<keyof LogEvents, Exclude<LogLevel, 'silent'>> = {
  'service.waiting': 'error',
  'service.listening': 'info',
  'service.stopping': 'info',
  'service.stopped': 'info',
  'request.ended': 'info',
  'request.refused': 'info',
  'request.failed': 'error',
  'stream.sent': 'info',
  'stream.broken': 'error',
  'file.broken': 'error',
  'export.started': 'info',
  'export.interrupted': 'warn',
  'export.requeued': 'info',
  'export.lost': 'warn',
  'export.done': 'info',
  'export.axesLeftOut': 'warn',
  'export.failed': 'error',
  'export.abandoned': 'error',
  'export.notCleared': 'warn',
  'queue.error': 'warn',
  'retention.swept': 'info',
  'retention.eventsSwept': 'info',
  'retention.error': 'warn',
  'requestSlots.lost': 'warn',
  'requestSlots.regained': 'info',
  'delivery.sent': 'debug',
  'delivery.refused': 'warn',
  'delivery.failed': 'error',
  'subscription.disabled': 'error',
  'subscription.error': 'error',
  'dispatcher.error': 'warn',
  'log.dropped': 'warn',
}

const ranks: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3, silent: 4 }

export type Log = <Kind extends keyof LogEvents>(event: Kind, fields: LogEvents[Kind]) => void

/** Lines of more than this wait for a slow reader; further ones are dropped and counted, not kept in memory. */
const backlogBytesMax = 1024 * 1024

/** @param out standard output of the process; a test may give another stream */
export function createLog(level: LogLevel, out: NodeJS.WritableStream = process.stdout): Log {
  let dropped = 0
  let closed = false
  // A collector that went away (EPIPE) must not take the service with it. There is nobody left to tell.
  out.on('error', () => {
    closed = true
  })
  const write: Log = (event, fields) => {
    if (closed || ranks[levels[event]] < ranks[level]) return
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
  const record = { at: new Date().toISOString(), level: levels[event], event, ...fields }
  const text = JSON.stringify(record, (_key, value) => (value instanceof Error ? describe(value) : value))
  return `${withoutSecrets(text)}\n`
}

/** The text with every token and partner secret blotted out, for whatever quotes what a caller sent. */
export function withoutSecrets(text: string): string {
  return text.replace(/glv_(api|firm|secret)_[\w-]+/g, 'glv_$1_***')
}

/** Not an error's other properties: those of the database quote rows. */
function describe(error: Error): object {
  return {
    message: error.message,
    stack: error.stack,
    ...('code' in error ? { code: error.code } : {}),
    ...(error.cause instanceof Error ? { cause: describe(error.cause) } : {}),
  }
}
