/**
 * Requests to an S3 server: the client, what its failures mean, and trying again.
 *
 * The client of the package waits for ever on a silent server, and gives the connection of a 5xx away unread. So it
 * is handed a transport that bounds every request and reads what nobody else will. Its own retry is switched off: it
 * tries once more, and says so on the console.
 */
import http from 'node:http'
import https from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import { Client, S3Error } from 'minio'
import { limits } from '../config.ts'
import { StoreError, type StoreSettings } from './store.ts'

export type S3Settings = Extract<StoreSettings, { kind: 's3' }>

/** How long a store is waited for, see limits. */
export interface RetryPolicy {
  tries: number
  retryMs: number
  idleMs: number
}

export const defaultRetryPolicy: RetryPolicy = {
  tries: limits.storeTries,
  retryMs: limits.storeRetryMs,
  idleMs: limits.storeIdleMs,
}

/** Kept alive over all requests of a process or thread; idle connections keep nothing running. */
const agents = {
  'http:': new http.Agent({ keepAlive: true, maxSockets: 64 }),
  'https:': new https.Agent({ keepAlive: true, maxSockets: 64 }),
}

/**
 * @param endpoint of the settings, the inner or the public one
 * @param signal ends the requests of this client
 */
export function createClient(
  settings: S3Settings,
  endpoint: string,
  retryPolicy: RetryPolicy,
  signal?: AbortSignal,
): Client {
  const { protocol, hostname, port } = new URL(endpoint)
  const secure = protocol === 'https:'
  return new Client({
    endPoint: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port) || (secure ? 443 : 80),
    useSSL: secure,
    accessKey: settings.accessKey,
    secretKey: settings.secretKey,
    // Otherwise the client asks the server for it before the first request, and before signing an address.
    region: settings.region,
    transportAgent: agents[secure ? 'https:' : 'http:'],
    transport: { request: boundedRequest(secure ? https.request : http.request, retryPolicy, signal) },
    retryOptions: { disableRetry: true },
  })
}

function boundedRequest(
  request: typeof http.request,
  { idleMs }: RetryPolicy,
  signal: AbortSignal | undefined,
): typeof http.request {
  return ((options: http.RequestOptions, respond: (response: http.IncomingMessage) => void) => {
    const outgoing = request({ ...options, ...(signal ? { signal } : {}) }, (response) => {
      // Of these the client makes an error without reading them, and the connection would stay taken.
      if (response.statusCode! >= 500 || response.statusCode === 429) response.resume()
      respond(response)
    })
    outgoing.setTimeout(idleMs, () => outgoing.destroy(new Error(`no byte moved for ${idleMs} ms`)))
    const deadline = setTimeout(
      () => outgoing.destroy(new Error(`not done within ${limits.storeRequestMs} ms`)),
      limits.storeRequestMs,
    )
    outgoing.once('close', () => clearTimeout(deadline))
    return outgoing
  }) as typeof http.request
}

/** Runs it again, with doubling pauses, while what goes wrong may pass by itself. */
export async function withRetries<Result>(
  doing: string,
  retryPolicy: RetryPolicy,
  run: () => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run()
    } catch (error) {
      const failure = asStoreError(error, doing)
      if (!failure.retryable || attempt >= retryPolicy.tries || signal?.aborted) throw failure
      const pauseMs = Math.min(retryPolicy.retryMs * 2 ** (attempt - 1), limits.storeRetryMsMax)
      // Spread, so that all uploads that one restart has hit do not come back in the same instant.
      await delay(pauseMs * (0.75 + Math.random() / 2), undefined, signal ? { signal } : {}).catch(() => {})
    }
  }
}

/** S3 codes behind which the same request may succeed later. Those of a checksum: damage on the way. */
const passingCodes = new Set([
  'InternalError',
  'ServiceUnavailable',
  'SlowDown',
  'SlowDownRead',
  'SlowDownWrite',
  'RequestTimeout',
  'OperationAborted',
  'XMinioServerNotInitialized',
  'BadDigest',
  'XAmzContentSHA256Mismatch',
  'IncompleteBody',
  // No code at all: a proxy's answer, or an error behind a status of 200.
  '',
])

/** Of the network, and of an answer that is no S3: not mistakes of our own, nor the end of an aborted request. */
const passingNames = new Set(['Error', 'AggregateError', 'InvalidXMLError'])

export function asStoreError(cause: unknown, doing: string): StoreError {
  if (cause instanceof StoreError) return cause
  const code = codeOf(cause)
  const message = (cause as Error).message || code || 'no reason given'
  const retryable =
    cause instanceof S3Error ? passingCodes.has(code) : passingNames.has((cause as Error).name)
  const text = code && code !== message ? `${message} (${code})` : message
  return new StoreError(`${doing} failed: ${text}`, { retryable, cause })
}

/** Of S3 or of the network; '' where there is none. */
export function codeOf(error: unknown): string {
  const { code } = (error instanceof StoreError ? (error.cause ?? error) : error) as { code?: string }
  return code ?? ''
}

/** Whether the server said that it is not there: a bucket, an object, an upload. */
export function saysAbsent(error: unknown): boolean {
  return ['NoSuchBucket', 'NoSuchKey', 'NoSuchUpload', 'NotFound'].includes(codeOf(error))
}
