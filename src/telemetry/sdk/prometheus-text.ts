/**
 * Metrics as text for Prometheus. The serializer of OpenTelemetry leaves units out of names, so each metric gets the
 * name that the specification gives it for Prometheus first.
 */
import { PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import { type MetricData, type MetricProducer, MetricReader } from '@opentelemetry/sdk-metrics'
import { type MetricName, metrics, prometheusName } from '../metrics.ts'

export class PrometheusReader extends MetricReader {
  readonly #serializer = new PrometheusSerializer(undefined, false, undefined, false, true)

  constructor(observations: MetricProducer) {
    super({ metricProducers: [observations] })
  }

  async text(): Promise<string> {
    const { resourceMetrics } = await this.collect()
    const scopeMetrics = resourceMetrics.scopeMetrics.map((scope) => ({
      ...scope,
      metrics: scope.metrics.map(named),
    }))
    return this.#serializer.serialize({ ...resourceMetrics, scopeMetrics })
  }

  protected async onForceFlush(): Promise<void> {}

  protected async onShutdown(): Promise<void> {}
}

function named(metric: MetricData): MetricData {
  const { name } = metric.descriptor
  if (!(name in metrics)) return metric
  // The unit is part of the name; a line of its own is no comment that Prometheus knows.
  return {
    ...metric,
    descriptor: { ...metric.descriptor, name: prometheusName(name as MetricName), unit: '' },
  }
}
