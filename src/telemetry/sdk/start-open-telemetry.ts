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
import { createInstruments } from './instruments.ts'
import { listenForScrapes, PrometheusReader } from './metrics-listener.ts'
import { Observations } from './observations.ts'
import { OpenTelemetry } from './open-telemetry.ts'
import { metricsReader, tracerProvider } from './otlp.ts'
import { watchProcess } from './process-gauges.ts'
import { Spans } from './spans.ts'

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
  const observations = new Observations(resource, scope)
  const prometheus = metrics && new PrometheusReader(observations)
  const readers: IMetricReader[] = [
    ...(prometheus ? [prometheus] : []),
    ...(otlpEndpoint === undefined
      ? []
      : [metricsReader(otlpEndpoint, observations, timing, failed('metrics'))]),
  ]
  const meters = new MeterProvider({ resource, readers })
  const tracers =
    otlpEndpoint === undefined
      ? undefined
      : tracerProvider(otlpEndpoint, resource, tracesShare, timing, failed('traces'))
  const instruments = createInstruments(meters.getMeter(scope.name, version), observations)
  const spans = tracers && new Spans(tracers.getTracer(scope.name, version))
  const telemetry = new OpenTelemetry(instruments, spans)
  const unwatch = watchProcess(instruments)
  const flush = async () => {
    const flushed = Promise.allSettled([meters.shutdown(), tracers?.shutdown()])
    await Promise.race([flushed, delay(timing.flushMs, undefined, { ref: false })])
    unwatch()
    telemetry.close()
  }
  if (!metrics || !prometheus) return { telemetry, metricsUrl: undefined, close: flush }
  try {
    const listener = await listenForScrapes(metrics, () => prometheus.text())
    const metricsUrl = `${urlOf(metrics.host, listener.port)}/metrics`
    log('metrics.listening', { url: metricsUrl })
    return {
      telemetry,
      metricsUrl,
      close: async () => {
        await listener.close()
        await flush()
      },
    }
  } catch (error) {
    await flush()
    throw error
  }
}
