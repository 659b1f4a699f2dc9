/**
 * What the service reports to its operators, by the names of the metrics (`metrics.ts`). Rooms get a `Telemetry` as an
 * argument and know nothing of OpenTelemetry, which `start-telemetry.ts` loads only if METRICS_PORT or
 * OTEL_EXPORTER_OTLP_ENDPOINT is set.
 *
 * No argument may hold a value whose number grows with the data, such as an id: each value of a label is a time series
 * of its own. The exception is `requestId`, which only spans have.
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

/** Trace headers as a caller sent them. */
export type CallerTrace = { [Header in keyof TraceHeaders]?: string | undefined }

/** The counts of a connection pool, under the names that `pg.Pool` gives them. */
export interface PoolCounts {
  totalCount: number
  idleCount: number
  waitingCount: number
  options: { max: number }
}

/** What both the main thread and export threads (`thread-telemetry.ts`) report. */
export interface ThreadedTelemetry {
  count<Name extends SharedCounterName>(name: Name, labels: LabelsOf<Name>): void
  /** Records a duration. Export threads record none: the stages of an export show what they do. */
  record<Name extends HistogramName>(name: Name, seconds: number, labels: LabelsOf<Name>): void
  /** Shows the counts of a pool from now on. @param name as in pg_stat_activity, such as `grandlivre export` */
  watchPool(name: string, pool: PoolCounts): void
}

/** Seconds of each stage that an export went through. */
export type StageSeconds = Partial<Record<ExportStage, number>>

/** What an export thread measures of one export; part of the message that ends it. */
export interface ExportFacts {
  stages: StageSeconds
  /** Requests to the store; only a full export has them. */
  store?: StoreRequest[]
}

export interface EndedExport {
  /** What is exported: `movements`, `entries`, `changes` ...; `folder` for a full export. */
  kind: string
  /** Format of the stream or file: `json`, `ndjson`, `tra`, `csv`, `parquet`, `fec`. */
  format: string
  outcome: ExportOutcome
  rows: number
  /** Bytes before compression. */
  bytes: number
  /** When the export began, in epoch milliseconds. */
  startedAt: number
  facts: ExportFacts | undefined
  /** Trace of the request that caused the export. */
  trace: TraceHeaders | undefined
  requestId: string | undefined
}

/** A request to the store. A `write` sends 8 MiB, the size of a part of an upload. */
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
  /** Undefined if the client disconnected before there was a response. */
  status: number | undefined
  /** Code of the error, or `cut_off`. */
  errorType: string | undefined
  requestId: string
}

export interface RequestTelemetry {
  /** Headers for work on behalf of this request. Undefined without traces. */
  readonly trace: TraceHeaders | undefined
  ended(answer: AnsweredRequest): void
}

interface DeliveryTelemetry {
  /** Headers to send with the delivery. Undefined without traces. */
  readonly trace: TraceHeaders | undefined
  /** @param status of the response; null if there was no response */
  ended(outcome: DeliveryOutcome, status: number | null): void
}

export type ThreadKind = 'export' | 'hash'

export interface ThreadCounts {
  threadIds: number[]
  /** Tasks that threads have begun; one thread may run several. Undefined if the threads count them themselves. */
  running: number | undefined
  /** Tasks that wait for a thread. */
  waiting: number
}

/** One value of a gauge with labels. */
export interface Observation {
  value: number
  labels?: Record<string, string>
}

/** The values of a gauge: a number if it has no labels, undefined if there is no value now. */
export type GaugeValues = Observation[] | number | undefined

export interface Telemetry extends ThreadedTelemetry {
  /** @param by how much to add; 1 by default */
  count<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by?: number): void
  /** @param caller trace headers of the caller; malformed headers are ignored */
  requestBegan(method: string, caller: CallerTrace): RequestTelemetry
  exportEnded(ended: EndedExport): void
  /** Reports that an attempt at a delivery begins. @param parent the request that asked for it, such as a ping */
  deliveryBegan(parent?: TraceHeaders): DeliveryTelemetry
  /** Shows the counts of a kind of threads from now on. */
  watchThreads(kind: ThreadKind, counts: () => ThreadCounts): void
  /**
   * Reads a gauge when metrics are collected. A reading is kept for some seconds; a slow or failed reading makes the
   * gauge absent. If a gauge has several readers, the values of all of them are shown.
   */
  observe(gauge: GaugeName, read: () => GaugeValues | Promise<GaugeValues>): void
  /** Memory in which export threads count (`ThreadTelemetry`). If undefined, they count nothing. */
  readonly threadMemory: SharedArrayBuffer | undefined
}

export interface StartedTelemetry {
  telemetry: Telemetry
  /** `http://127.0.0.1:9464/metrics`; undefined if METRICS_PORT is not set. */
  metricsUrl: string | undefined
  /** Sends what has not been sent yet, within `flushMs` (timing.ts). */
  close(): Promise<void>
}

const notTraced = { trace: undefined, ended: () => {} }

/** Records nothing. For services whose operators asked for neither metrics nor traces. */
export const noTelemetry: Telemetry = {
  count: () => {},
  record: () => {},
  watchPool: () => {},
  requestBegan: () => notTraced,
  exportEnded: () => {},
  deliveryBegan: () => notTraced,
  watchThreads: () => {},
  observe: () => {},
  threadMemory: undefined,
}

/** Seconds of the monotonic clock of the machine, which all threads share. */
export function monotonicSeconds(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds + nanoseconds / 1e9
}

/** Measures the stages of an export. The first stage begins in the main thread. */
export class StageTimes {
  readonly seconds: StageSeconds = {}
  /** When the previous stage ended. */
  #at: number
  /** Seconds of other stages that alternate with the current one. */
  #beside = 0

  /** @param begunAt `monotonicSeconds` of the thread that asked for the export */
  constructor(begunAt: number) {
    this.#at = begunAt
  }

  /**
   * Ends a stage: it gets the time since the previous stage ended, except the time that `during` measured meanwhile.
   */
  end(stage: ExportStage): void {
    const now = monotonicSeconds()
    this.#add(stage, Math.max(0, now - this.#at - this.#beside))
    this.#at = now
    this.#beside = 0
  }

  /** Waits, and adds the time of the wait to `stage`, not to the current stage. */
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
