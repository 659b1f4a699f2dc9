/** GET /metrics, on a port of its own: no request of a partner reaches it, and it serves nothing else. */
import { createServer, type ServerResponse } from 'node:http'
import { PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import { type MetricData, MetricReader } from '@opentelemetry/sdk-metrics'
import type { Config } from '../../config.ts'
import { isOurHost, listen } from '../../listen.ts'
import { type MetricName, metrics, prometheusName } from '../metrics.ts'

/**
 * Serves metrics to scrapers.
 * @param text resolves to the metrics
 * @throws {Error} if the port cannot be used, with the remedy
 */
export async function listenForScrapes(
  { host, port, allowedHosts }: NonNullable<Config['metrics']>,
  text: () => Promise<string>,
) {
  const server = createServer((incoming, outgoing) => {
    incoming.resume()
    if (!isOurHost(incoming.headers.host, [host, ...allowedHosts]))
      return end(outgoing, 421, 'METRICS_ALLOWED_HOSTS has no such name\n')
    const path = incoming.url?.split('?', 1)[0]
    if (path !== '/metrics') return end(outgoing, 404, 'Only /metrics is here\n')
    if (incoming.method !== 'GET' && incoming.method !== 'HEAD') {
      outgoing.setHeader('Allow', 'GET, HEAD')
      return end(outgoing, 405, 'Only GET\n')
    }
    text().then(
      (collected) => end(outgoing, 200, collected),
      (error: Error) => end(outgoing, 500, `The metrics could not be collected: ${error.message}\n`),
    )
  })
  const bound = await listen(server, { host, port }, { port: 'METRICS_PORT', host: 'METRICS_HOST' })
  return {
    port: bound,
    close: async () => {
      server.closeAllConnections()
      await server[Symbol.asyncDispose]()
    },
  }
}

function end(outgoing: ServerResponse, status: number, text: string): void {
  outgoing.writeHead(status, {
    'Content-Type': 'text/plain; version=0.0.4; charset=utf-8',
    'Cache-Control': 'no-store',
  })
  outgoing.end(text)
}

/**
 * Metrics as text for Prometheus. OpenTelemetry's serializer leaves units out of names. So each metric is first renamed
 * to the name that the specification gives it for Prometheus.
 */
export class PrometheusReader extends MetricReader {
  readonly #serializer = new PrometheusSerializer(undefined, false, undefined, false, true)

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
  // The unit is part of the name. The serializer's line for the unit is left out: Prometheus does not know that kind of
  // comment.
  return {
    ...metric,
    descriptor: { ...metric.descriptor, name: prometheusName(name as MetricName), unit: '' },
  }
}
