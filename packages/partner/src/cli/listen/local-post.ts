/** One delivery to an address of this machine, signed as the service signs it. */
import { lookup } from 'node:dns'
import http from 'node:http'
import https from 'node:https'
import type { LookupFunction } from 'node:net'
import { type Delivered, deliveryHeaders } from '../../../../contract/src/webhook-delivery.ts'

export interface LocalAnswer {
  /** Null: there was no response. */
  status: number | null
  milliseconds: number
  /** Why there was no response. */
  error: string | null
  /** The beginning of the response. */
  answer: string
  /** As asked for by Retry-After; 0 without it. */
  retryAfterMs: number
}

/** As of deliveries (docs/spec/webhooks.md#retries). */
const timeoutMs = 10_000
const answerBytesMax = 1024

/**
 * Redirects are not followed, as with every delivery.
 * @param version of the sender, for `user-agent`
 * @throws the reason of the signal
 */
export async function postLocally(
  target: URL,
  delivered: Delivered,
  version: string,
  signal: AbortSignal,
): Promise<LocalAnswer> {
  signal.throwIfAborted()
  const started = performance.now()
  const milliseconds = () => Math.round(performance.now() - started)
  try {
    const response = await send(target, delivered, version, signal)
    const took = milliseconds()
    return {
      status: response.statusCode ?? null,
      milliseconds: took,
      error: null,
      answer: await beginningOf(response),
      retryAfterMs: retryAfterMs(response.headers['retry-after']),
    }
  } catch (error) {
    signal.throwIfAborted()
    return {
      status: null,
      milliseconds: milliseconds(),
      error: describe(error),
      answer: '',
      retryAfterMs: 0,
    }
  }
}

function send(
  target: URL,
  delivered: Delivered,
  version: string,
  signal: AbortSignal,
): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { request } = target.protocol === 'https:' ? https : http
    const headers = { ...deliveryHeaders(delivered, version), 'content-length': delivered.body.length }
    // A connection of its own: a receiver that restarts has closed the former ones.
    const sent = request(target, { method: 'POST', headers, agent: false, signal, lookup: lookupLocally })
    const late = setTimeout(
      () => sent.destroy(new Error(`no response within ${timeoutMs / 1000} seconds`)),
      timeoutMs,
    )
    sent.on('close', () => clearTimeout(late))
    sent.on('response', resolve)
    sent.on('error', reject)
    sent.end(delivered.body)
  })
}

/** Names below localhost are this machine by RFC 6761. A name server that knows them would lead the events elsewhere. */
const lookupLocally: LookupFunction = (hostname, options, done) =>
  lookup(hostname.endsWith('.localhost') ? 'localhost' : hostname, options, done)

async function beginningOf(response: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of response) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes >= answerBytesMax) break
    }
  } catch {
    // It broke off or timed out after its status, which decides.
  }
  return new TextDecoder().decode(Buffer.concat(chunks).subarray(0, answerBytesMax))
}

function retryAfterMs(header: string | undefined): number {
  return header !== undefined && /^\d{1,6}$/.test(header) ? Number(header) * 1000 : 0
}

function describe(error: unknown): string {
  const [first = error] = error instanceof AggregateError ? error.errors : []
  const { message, code } = first as NodeJS.ErrnoException
  return message || code || 'it cannot be reached'
}
