/** GET /metrics, on a port of its own: nothing of partners reaches it, and nothing else is served there. */
import { createServer, type ServerResponse } from 'node:http'
import type { Config } from '../../config.ts'
import { isOurHost, listen } from '../../listen.ts'

export interface MetricsListener {
  port: number
  close(): Promise<void>
}

/**
 * @param text resolves to the metrics
 * @throws {Error} if the port cannot be used, with the remedy
 */
export async function listenForScrapes(
  { host, port, allowedHosts }: NonNullable<Config['metrics']>,
  text: () => Promise<string>,
): Promise<MetricsListener> {
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
      (metrics) => end(outgoing, 200, metrics),
      (error: Error) => end(outgoing, 500, `The metrics could not be collected: ${error.message}\n`),
    )
  })
  const bound = await listen(server, { host, port }, { port: 'METRICS_PORT', host: 'METRICS_HOST' })
  return {
    port: bound,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed())
        server.closeAllConnections()
      }),
  }
}

function end(outgoing: ServerResponse, status: number, text: string): void {
  outgoing.writeHead(status, {
    'Content-Type': 'text/plain; version=0.0.4; charset=utf-8',
    'Cache-Control': 'no-store',
  })
  outgoing.end(text)
}
