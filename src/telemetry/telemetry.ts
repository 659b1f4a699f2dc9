/**
 * What the service reports to its operators, by the names of the metrics (`metrics.ts`). Rooms get a `Telemetry` as
 * an argument and know nothing of OpenTelemetry, which `start-telemetry.ts` loads only if METRICS_PORT or
 * OTEL_EXPORTER_OTLP_ENDPOINT is set.
 *
 * No argument may hold what grows with the data, such as an id: each value of a label is a time series of its own. The
 * exception is `requestId`, which only spans have.
 */
import type {
  CounterName,
  DeliveryOutcome,
  ExportOutcome,
  ExportStage,
  GaugeName,
  HistogramName,
  LabelsOf,
  SharedCounterName,
} from './metrics.ts'

/** Headers by which a trace continues in another process (W3C Trace Context). */
export interface TraceHeaders {
  traceparent: string
  tracestate?: string | undefined
}

/** Such headers as a caller sent them. */
export interface CallerTrace {
  traceparent?: string | undefined
  tracestate?: string | undefined
}

/** The counts of a pool of connections, as `pg.Pool` has them. */
export interface PoolCounts {
  totalCount: number
  idleCount: number
  waitingCount: number
  options: { max: number }
}

/** What the main thread and export threads (`thread-telemetry.ts`) count. */
export interface ThreadedTelemetry {
  count<Name extends SharedCounterName>(name: Name, labels: LabelsOf<Name>): void
  /** Export threads record nothing: stages of exports show what they do. */
  record<Name extends HistogramName>(name: Name, seconds: number, labels: LabelsOf<Name>): void
  /** Shows the counts of a pool from now on. @param name as in pg_stat_activity, such as `grandlivre export` */
  watchPool(name: string, pool: PoolCounts): void
}

/** Seconds of each stage that an export had. */
export type StageSeconds = Partial<Record<ExportStage, number>>

/** What an export thread measures of one export; part of the message that ends it. */
export interface ExportFacts {
  stages: StageSeconds
  /** Requests to the store, by a full export. */
  store?: StoreRequest[]
}

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

/** A `write` is of 8 MiB, the size of a part of an upload. */
export type StoreRequest = LabelsOf<'grandlivre.store.request.duration'> & { seconds: number }

export function countStoreRequest(
  telemetry: Pick<Telemetry, 'count' | 'record'>,
  { operation, outcome, seconds }: StoreRequest,
): void {
  telemetry.record('grandlivre.store.request.duration', seconds, { operation, outcome })
  if (outcome === 'failed') telemetry.count('grandlivre.store.errors', { operation })
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

export interface Telemetry extends ThreadedTelemetry {
  /** @param by 1 unless given */
  count<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by?: number): void
  /** @param caller its headers; malformed ones are ignored */
  requestBegan(method: string, caller: CallerTrace): RequestTelemetry
  exportEnded(ended: EndedExport): void
  /** An attempt at a delivery begins. @param parent the request that asked for it, such as a ping */
  deliveryBegan(parent?: TraceHeaders): DeliveryTelemetry
  /** Shows the counts of some threads from now on. */
  watchThreads(kind: ThreadKind, counts: () => ThreadCounts): void
  /**
   * Reads a gauge when metrics are collected. A reading is kept for some seconds; a slow or failed one makes the gauge
   * absent. Of several readers of one gauge, all values are shown.
   */
  observe(gauge: GaugeName, read: () => Observation[] | Promise<Observation[]>): void
  /** Memory in which export threads count (`ThreadTelemetry`). Undefined: they count nothing. */
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

/** Records nothing: for services whose operators asked for no metrics and traces. */
export const noTelemetry: Telemetry = {
  count: () => {},
  record: () => {},
  watchPool: () => {},
  requestBegan: () => noRequest,
  exportEnded: () => {},
  deliveryBegan: () => noDelivery,
  watchThreads: () => {},
  observe: () => {},
  threadMemory: undefined,
}

/** Seconds of the monotonic clock of the machine, which all threads share. */
export function monotonicSeconds(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds + nanoseconds / 1e9
}

/** Measures the stages of an export, whose time begins in the main thread. */
export class StageTimes {
  readonly seconds: StageSeconds = {}
  /** Where the last stage that is over ended. */
  #at: number
  /** Seconds of stages that took turns with the current one. */
  #beside = 0

  /** @param begunAt `monotonicSeconds` of the thread that asked for the export */
  constructor(begunAt: number) {
    this.#at = begunAt
  }

  /** The time since the end of the stage before belongs to this one, except what `during` measured in it. */
  end(stage: ExportStage): void {
    const now = monotonicSeconds()
    this.#add(stage, Math.max(0, now - this.#at - this.#beside))
    this.#at = now
    this.#beside = 0
  }

  /** Waits, and counts the wait for another stage than the current one. */
  async during<Result>(stage: ExportStage, wait: Promise<Result>): Promise<Result> {
    const began = monotonicSeconds()
    try {
      return await wait
    } finally {
      const took = monotonicSeconds() - began
      this.#add(stage, took)
      this.#beside += took
    }
  }

  #add(stage: ExportStage, seconds: number): void {
    this.seconds[stage] = (this.seconds[stage] ?? 0) + seconds
  }
}
