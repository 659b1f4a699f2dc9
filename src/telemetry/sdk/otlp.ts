/**
 * Sends metrics and traces to a collector, by OTLP over HTTP with protobuf. A collector that is away or slow delays
 * nothing: the queue of spans is bounded, and further spans are dropped. The first failure is logged, and the next one
 * only after the collector has accepted something again.
 *
 * The exporters themselves read OTEL_EXPORTER_OTLP_HEADERS, _COMPRESSION and _CERTIFICATE from the environment.
 */
import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import type { Resource } from '@opentelemetry/resources'
import { type MetricProducer, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { TelemetryTiming } from '../../timing.ts'

/** Most spans that wait to be sent, at some 500 bytes each. */
const maxQueueSize = 4_096

/** Called with the first failure after the start, and with the first one after each success. */
type OnFailure = (error: unknown) => void

export function metricsReader(
  endpoint: string,
  metricProducers: MetricProducer[],
  { exportMs, sendMs: timeoutMillis }: TelemetryTiming,
  failed: OnFailure,
): PeriodicExportingMetricReader {
  const exporter = new OTLPMetricExporter({ url: `${endpoint}/v1/metrics`, timeoutMillis })
  return new PeriodicExportingMetricReader({
    exporter: reporting(exporter, failed),
    metricProducers,
    exportIntervalMillis: exportMs,
    exportTimeoutMillis: Math.min(exportMs, timeoutMillis),
  })
}

/**
 * @param share which share of the traces that begin here is recorded, 0 to 1. A trace that a caller began is recorded
 *   if the caller records it
 */
export function tracerProvider(
  endpoint: string,
  resource: Resource,
  share: number,
  { spanBatchMs, sendMs: timeoutMillis }: TelemetryTiming,
  failed: OnFailure,
): TracerProvider {
  const exporter = new OTLPTraceExporter({ url: `${endpoint}/v1/traces`, timeoutMillis })
  const processor = new BatchSpanProcessor({
    exporter: reporting(exporter, failed),
    maxQueueSize,
    scheduledDelayMillis: spanBatchMs,
  })
  return new TracerProvider({
    resource,
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
    spanProcessors: [processor],
  })
}

/** @param exporter sends batches of metrics or of spans */
function reporting<Batch, Kind extends { export(batch: Batch, done: (result: ExportResult) => void): void }>(
  exporter: Kind,
  failed: OnFailure,
): Kind {
  let hasFailed = false
  const send = exporter.export.bind(exporter)
  exporter.export = (batch, done) =>
    send(batch, (result) => {
      const isFailure = result.code !== ExportResultCode.SUCCESS
      if (isFailure && !hasFailed) failed(result.error)
      hasFailed = isFailure
      done(result)
    })
  return exporter
}
