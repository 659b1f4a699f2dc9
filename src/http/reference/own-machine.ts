/**
 * Whether a request comes from a page of this service, in a browser on the machine of the service. Every way in which a
 * page or a machine elsewhere could read the answer is refused:
 *
 *   a service that others can reach       it must listen on a loopback address, and its public address, if set, is one
 *   a request from another machine        the connection must come from a loopback address
 *   a name that resolves to 127.0.0.1     `Host` must be a loopback name (DNS rebinding)
 *   a page of another site or port        `Sec-Fetch-Site` must be same-origin; no header of CORS is ever sent
 *   a proxy on this machine               none of its headers may be there; `Referer`, which proxies that replace `Host`
 *                                         leave alone, must name the same host
 *
 * Another user of this machine can ask like a browser (docs/operators.md).
 */
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
import type { Config } from '../../config.ts'

export type BrowserRequest = Pick<IncomingMessage, 'headersDistinct'> & {
  socket: { remoteAddress?: string | undefined }
}

export function isOnOwnMachine(
  { host, publicUrl }: Pick<Config, 'host' | 'publicUrl'>,
  { headersDistinct, socket }: BrowserRequest,
): boolean {
  if (!isLoopback(host)) return false
  if (publicUrl !== undefined && !isLoopback(new URL(publicUrl).hostname)) return false
  if (!isLoopback(socket.remoteAddress ?? '')) return false
  const name = headersDistinct['host']?.join() ?? ''
  if (!isLoopback(hostNameOf(name))) return false
  if (headersDistinct['referer']?.join() !== `http://${name}/docs/api/`) return false
  if (headersDistinct['sec-fetch-site']?.join() !== 'same-origin') return false
  return !Object.keys(headersDistinct).some((name) =>
    /^(?:forwarded|via|x-forwarded-.*|x-real-ip)$/.test(name),
  )
}

/** `Host` without its port. */
function hostNameOf(host: string): string {
  return host.replace(/:\d*$/, '')
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

/** @param name an address or a host name; IPv6 also in brackets */
function isLoopback(name: string): boolean {
  const bare = name.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  const version = isIP(bare)
  return version === 0 ? bare === 'localhost' : loopback.check(bare, version === 6 ? 'ipv6' : 'ipv4')
}
