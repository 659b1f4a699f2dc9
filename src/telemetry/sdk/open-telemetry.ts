/**
 * Implements `Telemetry` with the libraries of OpenTelemetry: one set of instruments serves both the text for
 * Prometheus and OTLP.
 *
 * prom-client would take 0.65 microseconds for a request where this SDK takes 0.83 (one histogram with four labels, on
 * a quiet machine), and OTLP would then need a second set of instruments. A span takes 2.6 microseconds. A request has
 * one or two histograms and as many spans, an export some ten of each.
 */
import type { Attributes, Counter, Histogram, Meter } from '@opentelemetry/api'
import {
  type ExportStage,
  type LabelsOf,
  type Metric,
  type MetricName,
  metrics,
  poolLabel,
  type SharedCounterName,
  sharedCounters,
} from '../metrics.ts'
import { createReading } from '../reading.ts'
import {
  countStoreRequest,
  type EndedExport,
  type Telemetry,
  type ThreadCounts,
  type ThreadKind,
} from '../telemetry.ts'
import { readThreadMemory, shareThreadMemory, ThreadTelemetry } from '../thread-telemetry.ts'
import type { Observe } from './observations.ts'
import type { Spans } from './spans.ts'

/** Stands for the main thread: no thread of Node has this id. */
const mainThread = -1

/** Methods that get a label of their own. Others share one, because a caller may invent them. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Counters that are kept elsewhere, by all threads or by the machine, and read when metrics are collected. */
const observedCounters: ReadonlySet<MetricName> = new Set([...sharedCounters, 'process.cpu.time'])

/** @param spans undefined if there are no traces */
export function createOpenTelemetry(
  meter: Meter,
  observe: Observe,
  spans: Spans | undefined,
): Telemetry & { close(): void } {
  const threadMemory = shareThreadMemory()
  const memory = readThreadMemory(threadMemory)
  // The main thread counts in the same way as export threads.
  const own = new ThreadTelemetry(threadMemory, mainThread)
  const { counters, histograms } = createInstruments(meter)
  const threads: WatchedThreads[] = []
  observeThreads(observe, threads, memory)
  observePools(observe, threads, memory)
  for (const name of ['grandlivre.database.errors', 'grandlivre.replica.fallbacks'] as const)
    observe(name, () => memory.counts(name))
  let activeRequests = 0
  observe('http.server.active_requests', () => activeRequests)
  const telemetry: Telemetry = {
    threadMemory,
    // Events that export threads count, too, are counted in the memory that all threads share.
    count: (name, labels, by = 1) => {
      const counter = counters.get(name)
      if (counter) counter.add(by, labels as Attributes)
      else own.count(name as SharedCounterName, labels as LabelsOf<SharedCounterName>, by)
    },
    record: (name, seconds, labels) => histograms.get(name)!.record(seconds, labels as Attributes),
    requestBegan: (method, caller) => {
      const began = performance.now()
      const knownMethod = methods.has(method) ? method : '_OTHER'
      const span = spans?.request(knownMethod, caller)
      activeRequests += 1
      return {
        trace: span?.trace,
        ended: (answer) => {
          activeRequests -= 1
          const labels: LabelsOf<'http.server.request.duration'> = {
            'http.request.method': knownMethod,
            'url.scheme': 'http',
          }
          if (answer.route !== undefined) labels['http.route'] = answer.route
          if (answer.status !== undefined) labels['http.response.status_code'] = answer.status
          if (answer.errorType !== undefined) labels['error.type'] = answer.errorType
          telemetry.record('http.server.request.duration', secondsSince(began), labels)
          span?.end(answer)
        },
      }
    },
    exportEnded: (ended) => {
      countExport(telemetry, ended)
      spans?.export(ended)
    },
    deliveryBegan: (parent) => {
      const began = performance.now()
      const span = spans?.delivery(parent)
      return {
        trace: span?.trace,
        ended: (outcome, status) => {
          telemetry.count('grandlivre.delivery.attempts', { outcome })
          telemetry.record('grandlivre.delivery.duration', secondsSince(began), { outcome })
          span?.end(outcome, status)
        },
      }
    },
    watchThreads: (kind, counts) => void threads.push({ kind, counts }),
    watchPool: (name, pool) => own.watchPool(name, pool),
    observe: (gauge, read) => observe(gauge, createReading(read).latest),
  }
  return { ...telemetry, close: () => own.close() }
}

function secondsSince(began: number): number {
  return (performance.now() - began) / 1_000
}

/** Creates the counters and histograms of the table of metrics. */
function createInstruments(meter: Meter) {
  const counters = new Map<MetricName, Counter>()
  const histograms = new Map<MetricName, Histogram>()
  for (const [name, metric] of Object.entries(metrics) as [MetricName, Metric][]) {
    const { kind, unit, description, labels, buckets = [] } = metric
    if (kind === 'histogram') {
      const advice = { explicitBucketBoundaries: [...buckets] }
      histograms.set(name, meter.createHistogram(name, { unit, description, advice }))
    }
    if (kind !== 'counter' || observedCounters.has(name)) continue
    const counter = meter.createCounter(name, { unit, description })
    if (Object.keys(labels).length === 0) counter.add(0)
    for (const [label, values] of Object.entries(labels))
      for (const value of values ?? []) counter.add(0, { [label]: value })
    counters.set(name, counter)
  }
  return { counters, histograms }
}

function countExport(telemetry: Telemetry, { kind, format, outcome, rows, bytes, facts }: EndedExport): void {
  telemetry.count('grandlivre.export.ended', { outcome })
  if (outcome === 'done') {
    const labels = { 'grandlivre.export.kind': kind, 'grandlivre.export.format': format }
    telemetry.count('grandlivre.export.rows', labels, rows)
    telemetry.count('grandlivre.export.bytes', labels, bytes)
  }
  for (const [stage, seconds] of Object.entries(facts?.stages ?? {}) as [ExportStage, number][])
    telemetry.record('grandlivre.export.duration', seconds, { 'grandlivre.export.stage': stage })
  for (const request of facts?.store ?? []) countStoreRequest(telemetry, request)
}

interface WatchedThreads {
  kind: ThreadKind
  counts: () => ThreadCounts
}

type ThreadMemory = ReturnType<typeof readThreadMemory>

function observeThreads(observe: Observe, threads: readonly WatchedThreads[], memory: ThreadMemory): void {
  observe('grandlivre.thread.count', () =>
    threads.flatMap(({ kind, counts }) => {
      const { threadIds, running } = counts()
      // A task goes to the least busy thread, so each running task occupies a thread of its own until all are busy.
      const busy = running === undefined ? memory.busy(threadIds) : Math.min(threadIds.length, running)
      return [
        { value: busy, labels: { 'grandlivre.thread.kind': kind, state: 'busy' } },
        { value: threadIds.length - busy, labels: { 'grandlivre.thread.kind': kind, state: 'idle' } },
      ]
    }),
  )
  observe('grandlivre.thread.waiting', () => sum(threads.map(({ counts }) => counts().waiting)))
}

function observePools(observe: Observe, threads: readonly WatchedThreads[], memory: ThreadMemory): void {
  /** The counts of the pools of all threads, summed by the name of the pool. */
  const summed = () => {
    const living = new Set([mainThread, ...threads.flatMap(({ counts }) => counts().threadIds)])
    const byName = Map.groupBy(memory.pools(living), ({ name }) => name)
    return [...byName].map(([name, pools]) => ({
      labels: { [poolLabel]: name },
      total: sum(pools.map(({ totalCount }) => totalCount)),
      idle: sum(pools.map(({ idleCount }) => idleCount)),
      max: sum(pools.map(({ options }) => options.max)),
      waiting: sum(pools.map(({ waitingCount }) => waitingCount)),
      timeouts: sum(pools.map(({ timeouts }) => timeouts)) + (memory.formerTimeouts.get(name) ?? 0),
    }))
  }
  observe('db.client.connection.count', () =>
    summed().flatMap(({ labels, total, idle }) => [
      { value: idle, labels: { ...labels, 'db.client.connection.state': 'idle' } },
      { value: total - idle, labels: { ...labels, 'db.client.connection.state': 'used' } },
    ]),
  )
  const one = (key: 'max' | 'waiting' | 'timeouts') => () =>
    summed().map(({ labels, [key]: value }) => ({ value, labels }))
  observe('db.client.connection.max', one('max'))
  observe('db.client.connection.pending_requests', one('waiting'))
  observe('db.client.connection.timeouts', one('timeouts'))
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
