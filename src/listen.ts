/** Binds the ports of the service: of the API, of metrics, of the console. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Settings with a port and its address, for errors. */
export interface ListenSettings {
  /** `METRICS_PORT` */
  port: string
  /** `METRICS_HOST` */
  host: string
}

/**
 * @returns the port, also if 0 was asked for
 * @throws {Error} if it is taken or may not be opened, with the setting to change
 */
export function listen(
  server: Server,
  { host, port }: { host: string; port: number },
  settings: ListenSettings,
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  server.once('error', (cause: NodeJS.ErrnoException) => {
    const notOurs = `${host} is not an address of this machine: set ${settings.host}`
    const reasons: Record<string, string> = {
      EADDRINUSE: `Port ${port} of ${host} is in use: stop the program that listens there, or set ${settings.port} (0 picks a free one)`,
      EACCES: `This user may not open port ${port}: set ${settings.port} to 1024 or more`,
      EADDRNOTAVAIL: notOurs,
      ENOTFOUND: notOurs,
    }
    const other = `Cannot listen on ${host}:${port} (${settings.port}): ${cause.message}`
    reject(new Error(reasons[cause.code ?? ''] ?? other, { cause }))
  })
  server.listen(port, host, () => resolve((server.address() as AddressInfo).port))
  return promise
}
