/**
 * Sends one HTTP request by node:http or node:https, and resolves with the head of its answer. Fetch shows no trailers.
 */
import http from 'node:http'
import https from 'node:https'

export interface HttpRequest {
  url: URL
  method: string
  headers: Record<string, string>
  body: string | Uint8Array | undefined
  signal: AbortSignal | undefined
  /** Milliseconds for which the head of the answer may be awaited. */
  answerMs: number
}

/** Connections, kept open between requests. */
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
      // The other side may close a kept connection while a request is on its way. Only what can be repeated uses one.
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

/** A time-out, as an error of the system is. */
export function timedOut(what: string, ms: number): Error {
  return Object.assign(new Error(`${what} ${ms / 1000} seconds`), { code: 'ETIMEDOUT' })
}

/** As node:http reports an answer that ends before its end. */
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

/** Whether a connection was lost or not made, which may pass. A wrong certificate does not. */
export function isLost(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code ?? ''
  // HPE: what arrives is no HTTP, or not any more.
  return lossCodes.has(code) || code.startsWith('HPE_')
}
