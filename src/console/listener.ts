/** Node's server around the console, on a port of its own. */
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { listen, urlOf } from '../listen.ts'
import type { ListenerTiming } from '../timing.ts'

type Fetch = Parameters<typeof getRequestListener>[0]

export interface Listening {
  url: string
  /** Cuts what is open: pages ask again. */
  close(): Promise<void>
}

/** @throws {Error} if the port is taken or may not be opened; names the setting */
export async function listenForStaff(
  fetch: Fetch,
  { host, port }: { host: string; port: number },
  timing: ListenerTiming,
): Promise<Listening> {
  const server = createServer(
    {
      headersTimeout: timing.headersMs,
      requestTimeout: timing.requestMs,
      connectionsCheckingInterval: timing.checkMs,
    },
    getRequestListener(fetch),
  )
  server.setTimeout(timing.idleMs)
  const bound = await listen(server, { host, port }, { port: 'CONSOLE_PORT', host: 'CONSOLE_HOST' })
  const close = async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    server.close(() => resolve())
    server.closeAllConnections()
    await promise
  }
  return { url: urlOf(host, bound), close }
}
