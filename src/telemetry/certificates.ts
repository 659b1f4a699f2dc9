/**
 * When the certificates of the operator's own addresses expire: of PUBLIC_URL and of the S3 server. A proxy or the S3
 * server presents them, so the process reads them by connecting like a client: for the command `status`, and once an
 * hour if metrics are read.
 */
import { once } from 'node:events'
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import type { Config } from '../config.ts'
import type { Log } from '../log.ts'
import type { Observation } from './telemetry.ts'

/** Time limit for connecting, including TLS. */
const connectMs = 10_000

/** `store_public` is where partners download, if that is another address than the service's own. */
type EndpointName = 'public' | 'store' | 'store_public'

export interface Endpoint {
  endpoint: EndpointName
  /** `https://...` */
  url: string
}

export function endpointsOf({ publicUrl, store }: Pick<Config, 'publicUrl' | 'store'>): Endpoint[] {
  const endpoints: Endpoint[] = [{ endpoint: 'public', url: publicUrl ?? '' }]
  if (store.kind === 's3') {
    endpoints.push({ endpoint: 'store', url: store.endpoint })
    if (store.publicEndpoint !== store.endpoint)
      endpoints.push({ endpoint: 'store_public', url: store.publicEndpoint })
  }
  return endpoints.filter(({ url }) => url.startsWith('https:'))
}

/**
 * Returns a function that reads the seconds until each certificate expires. Certificates are read in the background, so
 * that a silent address delays nothing.
 * @param everyMs how often certificates are read again
 */
export function watchCertificates(
  endpoints: readonly Endpoint[],
  everyMs: number,
  log: Log,
): () => Observation[] {
  /** Epoch milliseconds at which each certificate expires, as last read. */
  const expiries = new Map<EndpointName, number>()
  /** Endpoints whose certificate could not be read last time. Each is logged once. */
  const unread = new Set<EndpointName>()
  let readAt = Number.NEGATIVE_INFINITY
  const read = async ({ endpoint, url }: Endpoint) => {
    try {
      expiries.set(endpoint, await readExpiry(url))
      unread.delete(endpoint)
    } catch (error) {
      // The expiry that was read before still holds.
      if (!unread.has(endpoint)) log('certificate.unread', { url, error })
      unread.add(endpoint)
    }
  }
  return () => {
    const now = performance.now()
    if (now - readAt >= everyMs) {
      readAt = now
      for (const endpoint of endpoints) void read(endpoint)
    }
    const left = (expiry: number) => (expiry - Date.now()) / 1_000
    return [...expiries].map(([endpoint, expiry]) => ({ value: left(expiry), labels: { endpoint } }))
  }
}

/**
 * Reads when the certificate of an address expires. Accepts any certificate: an expired one must be readable, too, and
 * nothing is sent over the connection.
 * @returns epoch milliseconds
 */
export async function readExpiry(url: string): Promise<number> {
  const { hostname, port } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  const socket = connect({
    host,
    port: Number(port) || 443,
    // The extension (SNI) takes names only, not addresses.
    ...(isIP(host) ? {} : { servername: host }),
    rejectUnauthorized: false,
  })
  socket.unref()
  socket.setTimeout(connectMs, () => socket.destroy(new Error(`no answer within ${connectMs} ms`)))
  await once(socket, 'secureConnect')
  const certificate = socket.getPeerX509Certificate()
  socket.destroy()
  if (!certificate) throw new Error('no certificate was presented')
  return certificate.validToDate.getTime()
}
