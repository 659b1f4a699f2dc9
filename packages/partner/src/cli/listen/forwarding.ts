/**
 * Reads the events of a subscription as they happen, and sends them on in order. As with real deliveries there is one
 * request at a time, and later events wait until this one is accepted; but the pauses between attempts are those of a
 * developer who is mending the receiver.
 */
import { randomInt } from 'node:crypto'
import { lookup } from 'node:dns'
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import type { LookupFunction } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type Delivered,
  deliveryBytesMax,
  deliveryEventsMax,
  deliveryHeaders,
} from '../../../../contract/src/webhook-delivery.ts'
import type { EventGap, EventPage, NumberedEvent } from '../../client/events.ts'
import type { Grandlivre } from '../../client/grandlivre.ts'
import { version } from '../../version.ts'
import { isAccepted, quoted } from '../answer-text.ts'
import type { CommandCall } from '../command.ts'

/** Before the second and later attempts; the last one repeats. */
const pausesMs = [1_000, 2_000, 5_000, 10_000, 15_000]
/** A receiver that asks for more time waits no longer than this. */
const pauseMsMax = 60_000

export function forwarding(
  { terminal, json }: Pick<CommandCall, 'terminal' | 'json'>,
  ledger: Grandlivre,
  subscription: { id: number; signingSecret: string },
  receiver: { target: URL; secret: string },
  signal: AbortSignal,
) {
  const { target, secret } = receiver
  const signingSecrets = [subscription.signingSecret]
  /** Cuts the pause before the next attempt; undefined while there is none. */
  let hurry: (() => void) | undefined
  let last: Batch | undefined
  let turn: Promise<void> = Promise.resolve()
  /** One request at a time: a replay waits for the delivery in flight. */
  const inTurn = (send: () => Promise<void>) => {
    turn = turn.then(send)
    return turn
  }

  /** @returns milliseconds until the next attempt; null if the receiver accepted, or if it is not repeated */
  const attempt = async (batch: Batch, id: string, number: number, isReplay: boolean) => {
    const { body, sequence, epoch, events } = batch
    const delivered = { id, body, date: Date.now(), secret, signingSecrets, sequence, epoch }
    const answer = await postLocally(target, delivered, signal)
    const { status, milliseconds } = answer
    const pauseMs = isReplay || isAccepted(status) ? null : pauseAfter(answer, number)
    if (!isAccepted(status)) terminal.note(`${target.host} ${refusalText(answer, pauseMs)}`)
    else if (json)
      for (const { sequence, event } of events)
        terminal.json({ sequence, status, milliseconds, attempts: number, isReplay, event })
    else terminal.print(events.map((each) => eventLine(each, answer, isReplay)))
    return pauseMs
  }

  const deliver = async (batch: Batch): Promise<void> => {
    const id = deliveryId()
    for (let number = 1; ; number += 1) {
      const pauseMs = await attempt(batch, id, number, false)
      if (pauseMs === null) break
      await pause(pauseMs)
    }
    last = batch
  }

  const pause = async (ms: number): Promise<void> => {
    const ending = new AbortController()
    hurry = () => ending.abort()
    const waited = delay(ms, undefined, { signal: AbortSignal.any([signal, ending.signal]) })
    await waited.catch(() => {})
    hurry = undefined
    signal.throwIfAborted()
  }

  return {
    /** Forwards until that many events are accepted, or for ever. @throws the reason of the signal */
    async run(countMax = Number.POSITIVE_INFINITY): Promise<void> {
      let left = countMax
      const limit = Math.min(deliveryEventsMax, countMax)
      const onGap = (gap: EventGap) => terminal.warn(gapText(gap))
      const pages = ledger.eventPages(subscription.id, { after: 0, limit, signal, onGap })
      for await (const { events, epoch } of pages) {
        for (const batch of batchesOf({ events: events.slice(0, left), epoch }))
          await inTurn(() => deliver(batch))
        left -= events.length
        if (left <= 0) return
      }
      signal.throwIfAborted()
    },
    /** Tries again at once what waits for its next attempt; otherwise sends the last delivery again. */
    again() {
      if (hurry) return hurry()
      const batch = last
      if (!batch) return terminal.note('There is no delivery yet to send again.')
      // As a replay of the service: another id of the delivery, with the same events and numbers.
      inTurn(async () => void (await attempt(batch, deliveryId(), 1, true))).catch(() => {})
    },
  }
}

function pauseAfter({ retryAfterMs }: LocalAnswer, attempt: number): number {
  const planned = pausesMs[Math.min(attempt, pausesMs.length) - 1]!
  return Math.min(Math.max(planned, retryAfterMs), pauseMsMax)
}

/** Decimal digits that no other delivery of this machine has: receivers may drop what they know by its id. */
function deliveryId(): string {
  return `${Date.now()}${String(randomInt(1000)).padStart(3, '0')}`
}

function gapText({ from, to, epoch }: EventGap): string {
  const why =
    epoch === undefined
      ? 'lost, or erased with their folder'
      : `epoch ${epoch} began on another server, and events may be lost. Ask each ledger for what changed (since)`
  return `Numbers ${from} to ${to} are left out: ${why}.`
}

function refusalText({ status, error, answer }: LocalAnswer, pauseMs: number | null): string {
  const what = status === null ? `gives no response: ${error}` : `answers ${status}${quoted(answer)}`
  return pauseMs === null ? `${what}.` : `${what}. Trying again in ${pauseMs / 1000} s.`
}

/** `12:00:01  cloudDocument CREATE export_...  #3  204 in 8 ms` */
function eventLine(
  { event, sequence }: NumberedEvent,
  { status, milliseconds }: LocalAnswer,
  isReplay: boolean,
) {
  const { name, operation, data, webhookId, createdAt } = event
  const time = new Date(createdAt).toLocaleTimeString('en-GB')
  const id = 'id' in data ? data.id : webhookId
  return `${time}  ${name} ${operation} ${id}  #${sequence}  ${status} in ${milliseconds} ms${isReplay ? ', again' : ''}`
}

/** A delivery as the service makes it. */
interface Batch {
  /** At least one, with consecutive numbers. */
  events: NumberedEvent[]
  /** The bytes that the service would send: it writes what JSON.stringify gives. */
  body: Uint8Array
  /** `1042-1061` */
  sequence: string
  /** In which its events got their numbers. */
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

type LocalAnswer = Awaited<ReturnType<typeof postLocally>>

/** The time-out of deliveries (docs/spec/webhooks.md#retries). */
const timeoutMs = 10_000
const answerBytesMax = 1024

/**
 * Posts one delivery. Redirects are not followed, as with every delivery.
 * @returns `status`, null if there was no response, and `error`, which says why; the beginning of the `answer`; how long
 *   Retry-After asks to wait, 0 without it
 * @throws the reason of the signal
 */
async function postLocally(target: URL, delivered: Delivered, signal: AbortSignal) {
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
    // The body broke off or timed out. The status had come, and decides.
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
