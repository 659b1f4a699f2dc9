/** Binds the ports of the API, of metrics and of the console. The last two accept requests for few host names only. */
import type { Server } from 'node:http'
import { type AddressInfo, isIP } from 'node:net'

/**
 * Binds a port.
 * @param settings names of the settings with the port and its address, for errors: `METRICS_PORT`, `METRICS_HOST`
 * @returns the port that was bound, even if 0 was asked for
 * @throws {Error} that names the setting to change, if the port is taken or may not be opened
 */
export function listen(
  server: Server,
  { host, port }: { host: string; port: number },
  settings: { host: string; port: string },
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

/** Address of a service for clients on its own machine: `http://127.0.0.1:8080`. */
export function urlOf(host: string, port: number | string): string {
  const name = ['0.0.0.0', '::'].includes(host) ? 'localhost' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}

/**
 * Reads a setting that lists host names.
 * @param text reads the text of a setting
 * @returns the host names, which commas separate in the setting
 */
export function readHostNames(
  setting: string,
  text: (setting: string) => string | undefined,
  mistakes: string[],
): string[] {
  const names = (text(setting) ?? '').split(',').map((name) => name.trim())
  for (const name of names.filter((given) => !/^[\w.-]*$/.test(given)))
    mistakes.push(`${setting} must be names without ports, separated by commas, not "${name}"`)
  return names.filter((name) => name !== '')
}

/**
 * Whether a request is meant for us. Another site may let its name lead to this machine (DNS rebinding), so that its
 * pages could read our answers. Such a request carries the site's name in its Host header, so only loopback names, bare
 * addresses and our own names are accepted.
 * @param host the header, with or without a port
 * @param names our own names, in any letter case
 */
export function isOurHost(host: string | undefined, names: readonly string[]): boolean {
  const url = `http://${host}`
  if (host === undefined || !/^[\w.:[\]-]+$/.test(host) || !URL.canParse(url)) return false
  const name = new URL(url).hostname.replace(/^\[|\]$/g, '')
  const isKnown = names.some((known) => known.toLowerCase() === name)
  return isKnown || name === 'localhost' || name.endsWith('.localhost') || isIP(name) !== 0
}
