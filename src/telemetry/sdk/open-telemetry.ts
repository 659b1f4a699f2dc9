/**
 * `Telemetry` by the libraries of OpenTelemetry: the text for Prometheus, and OTLP, from one set of instruments.
 *
 * prom-client would take 0.65 microseconds for a request where this SDK takes 0.83 (one histogram with four labels, on
 * a quiet machine), and OTLP would then need a second set of instruments. A span takes 2.6. A request has one or two of
 * each, an export some ten.
 */
import type { Attributes, Counter, Histogram } from '@opentelemetry/api'
import {
  type CounterName,
  type ExportStage,
  type GaugeName,
  type HistogramName,
  type LabelsOf,
  type MetricName,
  metrics,
  poolLabel,
  type SharedCounterName,
  sharedCounters,
} from '../metrics.ts'
import {
  type CallerTrace,
  countStoreRequest,
  type DeliveryTelemetry,
  type EndedExport,
  type Observation,
  type PoolCounts,
  type RequestTelemetry,
  type Telemetry,
  type ThreadCounts,
  type ThreadKind,
  type TraceHeaders,
} from '../telemetry.ts'
import { shareThreadMemory, ThreadMemory, ThreadTelemetry } from '../thread-telemetry.ts'
import type { Instruments } from './instruments.ts'
import type { Spans } from './spans.ts'

/** No thread of Node has this number. */
const mainThread = -1

/** Methods that get a label of their own; a caller may invent others. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Kept elsewhere, and read when metrics are collected: by all threads, or by the machine. */
const observedCounters: ReadonlySet<MetricName> = new Set([...sharedCounters, 'process.cpu.time'])

export class OpenTelemetry implements Telemetry {
  readonly threadMemory = shareThreadMemory()
  readonly #instruments: Instruments
  readonly #spans: Spans | undefined
  readonly #memory = new ThreadMemory(this.threadMemory)
  /** The main thread counts as export threads do. */
  readonly #own = new ThreadTelemetry(this.threadMemory, mainThread)
  readonly #threads: { kind: ThreadKind; counts: () => ThreadCounts }[] = []
  readonly #counters: ReadonlyMap<MetricName, Counter>
  readonly #histograms: ReadonlyMap<MetricName, Histogram>
  #activeRequests = 0

  /** @param spans undefined: no traces */
  constructor(instruments: Instruments, spans: Spans | undefined) {
    this.#instruments = instruments
    this.#spans = spans
    const names = Object.keys(metrics) as MetricName[]
    const counted = names.filter((name) => metrics[name].kind === 'counter' && !observedCounters.has(name))
    const recorded = names.filter((name) => metrics[name].kind === 'histogram')
    this.#counters = new Map(counted.map((name) => [name, instruments.counter(name)]))
    this.#histograms = new Map(recorded.map((name) => [name, instruments.histogram(name)]))
    instruments.gauge('http.server.active_requests', () => [{ value: this.#activeRequests }])
    this.#observeThreads()
    this.#observePools()
    for (const name of ['grandlivre.database.errors', 'grandlivre.replica.fallbacks'] as const)
      instruments.observedCounter(name, () => this.#memory.counts(name))
  }

  close(): void {
    this.#own.close()
  }

  /** What export threads count too is in the memory that they share. */
  count<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by = 1): void {
    const counter = this.#counters.get(name)
    if (counter) counter.add(by, labels as Attributes)
    else this.#own.count(name as SharedCounterName, labels as LabelsOf<SharedCounterName>, by)
  }

  record<Name extends HistogramName>(name: Name, seconds: number, labels: LabelsOf<Name>): void {
    this.#histograms.get(name)!.record(seconds, labels as Attributes)
  }

  requestBegan(method: string, caller: CallerTrace): RequestTelemetry {
    const began = performance.now()
    const knownMethod = methods.has(method) ? method : '_OTHER'
    const span = this.#spans?.request(knownMethod, caller)
    this.#activeRequests += 1
    return {
      trace: span?.trace,
      ended: (answer) => {
        this.#activeRequests -= 1
        const labels: LabelsOf<'http.server.request.duration'> = {
          'http.request.method': knownMethod,
          'url.scheme': 'http',
        }
        if (answer.route !== undefined) labels['http.route'] = answer.route
        if (answer.status !== undefined) labels['http.response.status_code'] = answer.status
        if (answer.errorType !== undefined) labels['error.type'] = answer.errorType
        this.record('http.server.request.duration', (performance.now() - began) / 1_000, labels)
        span?.end(answer)
      },
    }
  }

  exportEnded(ended: EndedExport): void {
    const { kind, format, outcome, rows, bytes, facts } = ended
    this.count('grandlivre.export.ended', { outcome })
    if (outcome === 'done') {
      const labels = { 'grandlivre.export.kind': kind, 'grandlivre.export.format': format }
      this.count('grandlivre.export.rows', labels, rows)
      this.count('grandlivre.export.bytes', labels, bytes)
    }
    for (const [stage, seconds] of Object.entries(facts?.stages ?? {}) as [ExportStage, number][])
      this.record('grandlivre.export.duration', seconds, { 'grandlivre.export.stage': stage })
    for (const request of facts?.store ?? []) countStoreRequest(this, request)
    this.#spans?.export(ended)
  }

  deliveryBegan(parent?: TraceHeaders): DeliveryTelemetry {
    const began = performance.now()
    const span = this.#spans?.delivery(parent)
    return {
      trace: span?.trace,
      ended: (outcome, status) => {
        this.count('grandlivre.delivery.attempts', { outcome })
        this.record('grandlivre.delivery.duration', (performance.now() - began) / 1_000, { outcome })
        span?.end(outcome, status)
      },
    }
  }

  watchThreads(kind: ThreadKind, counts: () => ThreadCounts): void {
    this.#threads.push({ kind, counts })
  }

  watchPool(name: string, pool: PoolCounts): void {
    this.#own.watchPool(name, pool)
  }

  observe(gauge: GaugeName, read: () => Observation[] | Promise<Observation[]>): void {
    this.#instruments.observedGauge(gauge, read)
  }

  #observeThreads(): void {
    this.#instruments.gauge('grandlivre.thread.count', () =>
      this.#threads.flatMap(({ kind, counts }) => {
        const { threadIds, running } = counts()
        // A task goes to the least busy thread.
        const busy =
          running === undefined ? this.#memory.busy(threadIds) : Math.min(threadIds.length, running)
        return [
          { value: busy, labels: { 'grandlivre.thread.kind': kind, state: 'busy' } },
          { value: threadIds.length - busy, labels: { 'grandlivre.thread.kind': kind, state: 'idle' } },
        ]
      }),
    )
    this.#instruments.gauge('grandlivre.thread.waiting', () => [
      { value: sum(this.#threads.map(({ counts }) => counts().waiting)) },
    ])
  }

  #observePools(): void {
    const instruments = this.#instruments
    instruments.gauge('db.client.connection.count', () =>
      this.#pools().flatMap(({ labels, total, idle }) => [
        { value: idle, labels: { ...labels, 'db.client.connection.state': 'idle' } },
        { value: total - idle, labels: { ...labels, 'db.client.connection.state': 'used' } },
      ]),
    )
    const gauge = (name: GaugeName, key: 'max' | 'waiting') =>
      instruments.gauge(name, () => this.#pools().map(({ labels, [key]: value }) => ({ value, labels })))
    gauge('db.client.connection.max', 'max')
    gauge('db.client.connection.pending_requests', 'waiting')
    instruments.observedCounter('db.client.connection.timeouts', () =>
      this.#pools().map(({ labels, timeouts: value }) => ({ value, labels })),
    )
  }

  /** The pools of all threads, summed by name. */
  #pools() {
    const living = new Set([mainThread, ...this.#threads.flatMap(({ counts }) => counts().threadIds)])
    const byName = Map.groupBy(this.#memory.pools(living), ({ name }) => name)
    return [...byName].map(([name, pools]) => ({
      labels: { [poolLabel]: name },
      total: sum(pools.map(({ totalCount }) => totalCount)),
      idle: sum(pools.map(({ idleCount }) => idleCount)),
      max: sum(pools.map(({ options }) => options.max)),
      waiting: sum(pools.map(({ waitingCount }) => waitingCount)),
      timeouts: sum(pools.map(({ timeouts }) => timeouts)) + (this.#memory.formerTimeouts.get(name) ?? 0),
    }))
  }
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
