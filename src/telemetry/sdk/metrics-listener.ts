/** GET /metrics, on a port of its own: nothing of partners reaches it, and nothing else is served there. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface MetricsListener {
  port: number
  close(): Promise<void>
}

/**
 * @param text resolves to the metrics
 * @throws {Error} if the port cannot be used, with the remedy
 */
export async function listenForScrapes(
  { host, port }: { host: string; port: number },
  text: () => Promise<string>,
): Promise<MetricsListener> {
  const server = createServer((incoming, outgoing) => {
    incoming.resume()
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
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', (error: NodeJS.ErrnoException) => reject(explain(error, host, port)))
  server.listen(port, host, resolve)
  await promise
  return {
    port: (server.address() as AddressInfo).port,
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

function explain(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const reasons: Record<string, string> = {
    EADDRINUSE: `Port ${port} of ${host} is in use: stop the program that listens there, or set METRICS_PORT (0 picks a free one)`,
    EACCES: `This user may not open port ${port}: set METRICS_PORT to 1024 or more`,
    EADDRNOTAVAIL: `${host} is not an address of this machine: set METRICS_HOST`,
    ENOTFOUND: `${host} is not an address of this machine: set METRICS_HOST`,
  }
  const reason = reasons[error.code ?? ''] ?? `Cannot listen for metrics on ${host}:${port}: ${error.message}`
  return new Error(reason, { cause: error })
}
