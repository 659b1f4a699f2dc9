/**
 * Requests to an S3 server: the client, the meaning of its errors, and retries.
 *
 * The package's client waits forever for a silent server, and gives back the connection of a 5xx response without
 * reading the response. So we give it a transport that bounds every request and reads what the client ignores. The
 * package's own retry is off: it tries only once more, and logs that to the console.
 */

import http from 'node:http'
import https from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import { Client, S3Error } from 'minio'
import type { StoreTiming } from '../timing.ts'
import { StoreError, type StoreSettings } from './store.ts'

export type S3Settings = Extract<StoreSettings, { kind: 's3' }>

/** Kept alive across all requests of a process or thread. Idle connections keep no process running. */
const agents = {
  'http:': new http.Agent({ keepAlive: true, maxSockets: 64 }),
  'https:': new https.Agent({ keepAlive: true, maxSockets: 64 }),
}

/**
 * @param endpoint the internal or the public one of the settings
 * @param signal aborts all requests of this client
 */
export function createClient(
  settings: S3Settings,
  endpoint: string,
  timing: StoreTiming,
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
    // Without a region, the client asks the server for it before its first request and before signing an address.
    region: settings.region,
    transportAgent: agents[secure ? 'https:' : 'http:'],
    transport: { request: boundedRequest(secure ? https.request : http.request, timing, signal) },
    retryOptions: { disableRetry: true },
  })
}

function boundedRequest(
  request: typeof http.request,
  { idleMs, requestMs }: StoreTiming,
  signal: AbortSignal | undefined,
): typeof http.request {
  return ((options: http.RequestOptions, respond: (response: http.IncomingMessage) => void) => {
    const outgoing = request({ ...options, ...(signal ? { signal } : {}) }, (response) => {
      // The client turns these responses into errors without reading them, which would keep the connection busy.
      if (response.statusCode! >= 500 || response.statusCode === 429) response.resume()
      respond(response)
    })
    outgoing.setTimeout(idleMs, () => outgoing.destroy(new Error(`no byte moved for ${idleMs} ms`)))
    const deadline = setTimeout(
      () => outgoing.destroy(new Error(`not done within ${requestMs} ms`)),
      requestMs,
    )
    outgoing.once('close', () => clearTimeout(deadline))
    return outgoing
  }) as typeof http.request
}

/** Retries with doubling pauses while the error may be temporary. */
export async function withRetries<Result>(
  doing: string,
  timing: StoreTiming,
  run: () => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run()
    } catch (error) {
      const failure = asStoreError(error, doing)
      if (!failure.retryable || attempt >= timing.tries || signal?.aborted) throw failure
      const pauseMs = Math.min(timing.retryMs * 2 ** (attempt - 1), timing.retryMsMax)
      // Jitter keeps uploads that one restart interrupted from all returning at the same moment.
      await delay(pauseMs * (0.75 + Math.random() / 2), undefined, signal ? { signal } : {}).catch(() => {})
    }
  }
}

/** S3 error codes after which the same request may succeed later. Checksum errors mean damage in transit. */
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
  // For errors without a code: a proxy's response, or an error with status 200.
  '',
])

/** Names of network errors, and of responses that are not from S3. Excludes our own mistakes and aborted requests. */
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

/** Returns the error code of S3 or of the network; '' if there is none. */
function codeOf(error: unknown): string {
  const { code } = (error instanceof StoreError ? (error.cause ?? error) : error) as { code?: string }
  return code ?? ''
}

/** Whether the server reported that a bucket, an object or an upload does not exist. */
export function saysAbsent(error: unknown): boolean {
  return ['NoSuchBucket', 'NoSuchKey', 'NoSuchUpload', 'NotFound'].includes(codeOf(error))
}
