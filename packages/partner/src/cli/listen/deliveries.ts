/** Deliveries as the service makes them: events packed into batches, and one signed post to an address of this machine. */
import { lookup } from 'node:dns'
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import type { LookupFunction } from 'node:net'
import {
  type Delivered,
  deliveryBytesMax,
  deliveryEventsMax,
  deliveryHeaders,
} from '../../../../contract/src/webhook-delivery.ts'
import type { EventPage, NumberedEvent } from '../../client/events.ts'
import { version } from '../../version.ts'

export interface Batch {
  /** At least one, with consecutive numbers. */
  events: NumberedEvent[]
  /** The bytes that the service would send: it writes what JSON.stringify gives. */
  body: Uint8Array
  /** `1042-1061` */
  sequence: string
  /** Of its numbers. */
  epoch: number | undefined
}

/**
 * Packs up to 100 events, and up to 90 KiB unless one alone is larger.
 * @param page its events have consecutive numbers
 */
export function* batchesOf({ events, epoch }: Pick<EventPage, 'events' | 'epoch'>): Generator<Batch> {
  let packed: NumberedEvent[] = []
  let texts: string[] = []
  let bytes = 0
  for (const each of events) {
    const text = JSON.stringify(each.event)
    const size = Buffer.byteLength(text) + 1
    if (packed.length === deliveryEventsMax || (packed.length > 0 && bytes + size > deliveryBytesMax)) {
      yield batchOf(packed, texts, epoch)
      packed = []
      texts = []
      bytes = 0
    }
    packed.push(each)
    texts.push(text)
    bytes += size
  }
  if (packed.length > 0) yield batchOf(packed, texts, epoch)
}

function batchOf(events: NumberedEvent[], texts: string[], epoch: number | undefined): Batch {
  return {
    events,
    body: Buffer.from(`[${texts.join(',')}]`),
    sequence: `${events[0]!.sequence}-${events.at(-1)!.sequence}`,
    epoch,
  }
}

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
 * Posts one delivery. Redirects are not followed, as with every delivery.
 * @throws the reason of the signal
 */
export async function postLocally(
  target: URL,
  delivered: Delivered,
  signal: AbortSignal,
): Promise<LocalAnswer> {
  signal.throwIfAborted()
  const started = performance.now()
  const milliseconds = () => Math.round(performance.now() - started)
  try {
    const response = await send(target, delivered, signal)
    const answered = { status: response.statusCode ?? null, milliseconds: milliseconds(), error: null }
    const answer = await beginningOf(response)
    return { ...answered, answer, retryAfterMs: retryAfterMs(response.headers['retry-after']) }
  } catch (error) {
    signal.throwIfAborted()
    const noResponse = { status: null, milliseconds: milliseconds(), error: describe(error) }
    return { ...noResponse, answer: '', retryAfterMs: 0 }
  }
}

async function send(target: URL, delivered: Delivered, signal: AbortSignal): Promise<http.IncomingMessage> {
  const { request } = target.protocol === 'https:' ? https : http
  const headers = { ...deliveryHeaders(delivered, version), 'content-length': delivered.body.length }
  // A connection of its own: a receiver that restarts has closed the former ones.
  const sent = request(target, { method: 'POST', headers, agent: false, signal, lookup: lookupLocally })
  const late = new Error(`no response within ${timeoutMs / 1000} seconds`)
  const timer = setTimeout(() => sent.destroy(late), timeoutMs)
  sent.on('close', () => clearTimeout(timer))
  // Also after the response, where the reader of its body gets the error.
  sent.on('error', () => {})
  sent.end(delivered.body)
  const [response] = await once(sent, 'response')
  return response
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
