/** Node's server around the console, on a port of its own. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { urlOf } from '../config.ts'
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
  const url = await listen(server, host, port)
  const close = async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    server.close(() => resolve())
    server.closeAllConnections()
    await promise
  }
  return { url, close }
}

function listen(server: Server, host: string, port: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  server.once('error', (error: NodeJS.ErrnoException) => {
    const reasons: Record<string, string> = {
      EADDRINUSE: `Port ${port} of ${host} is in use: stop the program that listens there, or set CONSOLE_PORT`,
      EACCES: `This user may not open port ${port}: set CONSOLE_PORT to 1024 or more`,
      EADDRNOTAVAIL: `${host} is not an address of this machine: set CONSOLE_HOST`,
      ENOTFOUND: `${host} is not an address of this machine: set CONSOLE_HOST`,
    }
    const reason =
      reasons[error.code ?? ''] ?? `The console cannot listen on ${host}:${port}: ${error.message}`
    reject(new Error(reason, { cause: error }))
  })
  server.listen(port, host, () => resolve(urlOf(host, (server.address() as AddressInfo).port)))
  return promise
}
