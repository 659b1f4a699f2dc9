/** Puts instruments, readers and exporters together. Loaded only if the operator asked for metrics. */
import { setTimeout as delay } from 'node:timers/promises'
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import { type IMetricReader, MeterProvider } from '@opentelemetry/sdk-metrics'
import type { Config } from '../../config.ts'
import { urlOf } from '../../listen.ts'
import type { Log } from '../../log.ts'
import type { TelemetryTiming } from '../../timing.ts'
import type { StartedTelemetry } from '../telemetry.ts'
import { listenForScrapes, PrometheusReader } from './metrics-listener.ts'
import { createObservations } from './observations.ts'
import { createOpenTelemetry } from './open-telemetry.ts'
import { metricsReader, tracerProvider } from './otlp.ts'
import { watchProcess } from './process-gauges.ts'
import { createSpans } from './spans.ts'

export async function startOpenTelemetry(
  { metrics, otlpEndpoint, tracesShare }: Pick<Config, 'metrics' | 'otlpEndpoint' | 'tracesShare'>,
  version: string,
  timing: TelemetryTiming,
  log: Log,
): Promise<StartedTelemetry> {
  const resource = defaultResource()
    .merge(resourceFromAttributes({ 'service.name': 'grandlivre', 'service.version': version }))
    .merge(detectResources({ detectors: [envDetector] }))
  const failed = (signal: 'metrics' | 'traces') => (error: unknown) =>
    log('telemetry.notSent', { signal, error })
  const scope = { name: 'grandlivre', version }
  const observations = createObservations(resource, scope)
  const metricProducers = [observations]
  const prometheus = metrics && new PrometheusReader({ metricProducers })
  const readers: IMetricReader[] = prometheus ? [prometheus] : []
  if (otlpEndpoint !== undefined)
    readers.push(metricsReader(otlpEndpoint, metricProducers, timing, failed('metrics')))
  const meters = new MeterProvider({ resource, readers })
  const tracers =
    otlpEndpoint === undefined
      ? undefined
      : tracerProvider(otlpEndpoint, resource, tracesShare, timing, failed('traces'))
  const spans = tracers && createSpans(tracers.getTracer(scope.name, version))
  const telemetry = createOpenTelemetry(meters.getMeter(scope.name, version), observations.observe, spans)
  const unwatch = watchProcess(observations.observe)
  await using stack = new AsyncDisposableStack()
  stack.defer(async () => {
    const flushed = Promise.allSettled([meters.shutdown(), tracers?.shutdown()])
    await Promise.race([flushed, delay(timing.flushMs, undefined, { ref: false })])
    unwatch()
    telemetry.close()
  })
  let metricsUrl: string | undefined
  if (prometheus) {
    const listener = await listenForScrapes(metrics, () => prometheus.text())
    stack.defer(listener.close)
    metricsUrl = `${urlOf(metrics.host, listener.port)}/metrics`
    log('metrics.listening', { url: metricsUrl })
  }
  const running = stack.move()
  return { telemetry, metricsUrl, close: () => running.disposeAsync() }
}
