/**
 * Sends one HTTP request through node:http or node:https, and resolves with the head of its answer. Fetch is of no use,
 * because it does not show trailers.
 */
import http from 'node:http'
import https from 'node:https'

export interface HttpRequest {
  url: URL
  method: string
  headers: Record<string, string>
  body: string | Uint8Array | undefined
  signal: AbortSignal | undefined
  /** Most milliseconds to wait for the head of the answer. */
  answerMs: number
}

/** Keeps connections open between requests. */
export class Connections {
  readonly #http = new http.Agent({ keepAlive: true })
  readonly #https = new https.Agent({ keepAlive: true })

  /**
   * Sends a request.
   * @throws {unknown} the reason of the signal, or an error of the system with its `code`
   */
  open({ url, method, headers, body, signal, answerMs }: HttpRequest): Promise<http.IncomingMessage> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const isSecure = url.protocol === 'https:'
      // The other side may close a kept connection while a request is on its way. So only requests that can be repeated
      // use a kept connection.
      const kept = isSecure ? this.#https : this.#http
      const agent = method === 'GET' || method === 'HEAD' ? kept : false
      const request = (isSecure ? https : http).request(url, { method, headers, agent })
      const timer = setTimeout(() => request.destroy(timedOut('No byte arrived for', answerMs)), answerMs)
      const abort = () => request.destroy()
      signal?.addEventListener('abort', abort)
      request.on('close', () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
      })
      request.on('error', (error) => reject(signal?.aborted ? signal.reason : error))
      request.on('response', (response) => {
        clearTimeout(timer)
        resolve(response)
      })
      request.end(body)
    })
  }

  /** Closes the connections that are open. */
  close(): void {
    this.#http.destroy()
    this.#https.destroy()
  }
}

/** A time-out in the form of an error of the system. */
export function timedOut(what: string, ms: number): Error {
  return Object.assign(new Error(`${what} ${ms / 1000} seconds`), { code: 'ETIMEDOUT' })
}

/** The error that node:http reports for an answer that is cut off. */
export function cut(message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code: 'ECONNRESET' })
}

const lossCodes = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
  'ENETRESET',
  'ERR_STREAM_PREMATURE_CLOSE',
  'ConnectionClosed',
  'ConnectionRefused',
])

/**
 * Whether a connection was lost or could not be made, for a reason that may pass. A wrong certificate does not pass.
 */
export function isLost(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code ?? ''
  // Codes that begin with HPE_ mean that the bytes are not HTTP, or no longer are.
  return lossCodes.has(code) || code.startsWith('HPE_')
}
