/**
 * What the service tells its operators of itself: one method for each thing that happens. Rooms get a `Telemetry` as an
 * argument and know nothing of OpenTelemetry, which `start-telemetry.ts` loads only if METRICS_PORT or
 * OTEL_EXPORTER_OTLP_ENDPOINT is set. `metrics.ts` has the metrics that come of it.
 *
 * No argument may hold what grows with the data, such as an id: each value of a label is a time series of its own. The
 * exception is `requestId`, which only spans have.
 */
import type { ObservedGauge } from './metrics.ts'

/** Headers by which a trace continues in another process (W3C Trace Context). */
export interface TraceHeaders {
  traceparent: string
  tracestate?: string | undefined
}

/** The same as a caller sent them. */
export interface CallerTrace {
  traceparent?: string | undefined
  tracestate?: string | undefined
}

/** Classes of SQLSTATE: connection, rollback, resources, operator. `other` is every other class. */
export const databaseErrorClasses = ['08', '40', '53', '57', 'other'] as const
export type DatabaseErrorClass = (typeof databaseErrorClasses)[number]

/** Why an export read the main database: the replica was late, gone, no replica any more, or cancelled the query. */
export const fallbackReasons = ['behind', 'away', 'promoted', 'conflict'] as const
export type FallbackReason = (typeof fallbackReasons)[number]

export const databaseOperations = ['select', 'insert', 'update', 'delete', 'begin', 'commit', 'copy'] as const
export type DatabaseOperation = (typeof databaseOperations)[number] | 'other'

/** The counts of a pool of connections, as `pg.Pool` has them. */
export interface PoolCounts {
  totalCount: number
  idleCount: number
  waitingCount: number
  options: { max: number }
}

/** What happens to connections, in the main thread and in export threads (`thread-telemetry.ts`). */
export interface DatabaseTelemetry {
  /** Shows the counts of a pool from now on. @param name as in pg_stat_activity, such as `grandlivre export` */
  watchPool(name: string, pool: PoolCounts): void
  /** No connection became free in time. */
  connectionTimedOut(pool: string): void
  /** A statement ended, also with an error. Export threads do not report theirs: stages of exports show them. */
  operationEnded(operation: DatabaseOperation, seconds: number): void
  databaseError(errorClass: DatabaseErrorClass): void
  /** A read of the replica was made on the main database instead. */
  replicaFellBack(reason: FallbackReason): void
}

/**
 * Parts of an export, in their order. Only a full export has `queue`, until a process claims it. `render` and `send`, or
 * `render` and `store`, take turns by chunk.
 */
export const exportStages = ['queue', 'wait', 'snapshot', 'first_row', 'render', 'send', 'store'] as const
export type ExportStage = (typeof exportStages)[number]

/** Seconds of each stage that an export had. */
export type StageSeconds = Partial<Record<ExportStage, number>>

/** What an export thread measures of one export; part of the message that ends it. */
export interface ExportFacts {
  stages: StageSeconds
  /** Requests to the store, by a full export. */
  store?: StoreRequest[]
}

export const exportOutcomes = ['done', 'failed', 'cancelled', 'interrupted', 'broken', 'left'] as const
/**
 * `interrupted`: a full export that is tried again. `broken`: failed after its first byte. `left`: the client went
 * before its end.
 */
export type ExportOutcome = (typeof exportOutcomes)[number]

export interface EndedExport {
  /** `movements`, `entries`, `changes` ...; `folder` for a full export. */
  kind: string
  /** Of the stream or file: `json`, `ndjson`, `tra`, `csv`, `parquet`, `fec`. */
  format: string
  outcome: ExportOutcome
  rows: number
  /** Before compression. */
  bytes: number
  /** When it began, epoch milliseconds. */
  startedAt: number
  facts: ExportFacts | undefined
  /** Of the request that caused it. */
  trace: TraceHeaders | undefined
  requestId: string | undefined
}

export const deliveryOutcomes = ['delivered', 'refused', 'unreachable', 'timeout', 'tls', 'blocked'] as const
/** `refused`: the response was no success. `blocked`: our rules for targets forbid the address. */
export type DeliveryOutcome = (typeof deliveryOutcomes)[number]

export const storeOperations = ['create', 'write', 'complete', 'remove', 'list', 'check'] as const

/** A `write` is of 8 MiB, the size of a part of an upload. */
export interface StoreRequest {
  operation: (typeof storeOperations)[number]
  outcome: 'done' | 'failed'
  seconds: number
}

export interface AnsweredRequest {
  /** The template of the route: `/api/v1/webhook/{id}`. Undefined if no route matched. */
  route: string | undefined
  /** Undefined if the client left before there was an answer. */
  status: number | undefined
  /** Code of the error, or `cut_off`. */
  errorType: string | undefined
  requestId: string
}

export interface RequestTelemetry {
  /** For work on behalf of this request. Undefined without traces. */
  readonly trace: TraceHeaders | undefined
  ended(answer: AnsweredRequest): void
}

export interface DeliveryTelemetry {
  /** Sent with the delivery. Undefined without traces. */
  readonly trace: TraceHeaders | undefined
  /** @param status of the response, if there was one */
  ended(outcome: DeliveryOutcome, status: number | null): void
}

export type ThreadKind = 'export' | 'hash'

export interface ThreadCounts {
  threadIds: number[]
  /** Tasks that threads have begun; a thread may run several. Undefined: the threads count them themselves. */
  running: number | undefined
  /** Tasks that wait for a thread. */
  waiting: number
}

/** One value of a gauge. */
export interface Observation {
  value: number
  labels?: Record<string, string>
}

export interface Telemetry extends DatabaseTelemetry {
  /** @param caller its headers; malformed ones are ignored */
  requestBegan(method: string, caller: CallerTrace): RequestTelemetry
  /** What arrived was no HTTP or too large, and reached no route. @param code of the error */
  requestRefused(code: string): void
  exportEnded(ended: EndedExport): void
  /** An attempt at a delivery begins. @param parent the request that asked for it, such as a ping */
  deliveryBegan(parent?: TraceHeaders): DeliveryTelemetry
  storeRequestEnded(request: StoreRequest): void
  /** Shows the counts of some threads from now on. */
  watchThreads(kind: ThreadKind, counts: () => ThreadCounts): void
  threadDied(): void
  /**
   * Reads a gauge when metrics are collected. A reading is kept for some seconds; a slow or failed one makes the gauge
   * absent. Of several readers of one gauge, all values are shown.
   */
  observe(gauge: ObservedGauge, read: () => Observation[] | Promise<Observation[]>): void
  /** What export threads share with this telemetry; for `ThreadTelemetry`. */
  readonly threadMemory: SharedArrayBuffer | undefined
}

export interface StartedTelemetry {
  telemetry: Telemetry
  /** `http://127.0.0.1:9464/metrics`; undefined if METRICS_PORT is not set. */
  metricsUrl: string | undefined
  /** Sends what is left, within `flushMs` (timing.ts). */
  close(): Promise<void>
}

const noRequest: RequestTelemetry = { trace: undefined, ended: () => {} }
const noDelivery: DeliveryTelemetry = { trace: undefined, ended: () => {} }

/** Tells nobody: what services have whose operators did not ask. */
export const noTelemetry: Telemetry = {
  watchPool: () => {},
  connectionTimedOut: () => {},
  operationEnded: () => {},
  databaseError: () => {},
  replicaFellBack: () => {},
  requestBegan: () => noRequest,
  requestRefused: () => {},
  exportEnded: () => {},
  deliveryBegan: () => noDelivery,
  storeRequestEnded: () => {},
  watchThreads: () => {},
  threadDied: () => {},
  observe: () => {},
  threadMemory: undefined,
}
