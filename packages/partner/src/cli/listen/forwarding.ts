/**
 * Reads the events of a subscription as they happen and forwards them in order. As with real deliveries there is one
 * request at a time, and later events wait until it is accepted. The pauses between attempts are shorter, because a
 * developer is mending the receiver meanwhile.
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

/** Pauses before the second and later attempts. The last one repeats. */
const pausesMs = [1_000, 2_000, 5_000, 10_000, 15_000]
/** Longest pause, even if the receiver asks for more. */
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
  /** Ends the current pause between attempts; undefined if there is none. */
  let hurry: (() => void) | undefined
  let last: Batch | undefined
  let turn: Promise<void> = Promise.resolve()
  /** One request at a time: a replay waits for the delivery in flight. */
  const inTurn = (send: () => Promise<void>) => {
    turn = turn.then(send)
    return turn
  }

  /**
   * @returns milliseconds until the next attempt; null if there is none, because the receiver accepted or this was a
   *   replay
   */
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
    /** Forwards events until `countMax` are accepted, or for ever. @throws the reason of the signal */
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
    /** Retries at once a delivery that waits for its next attempt; if none waits, sends the last delivery again. */
    again() {
      if (hurry) return hurry()
      const batch = last
      if (!batch) return terminal.note('There is no delivery yet to send again.')
      // As when the service replays: the delivery gets a new id, and its events and numbers stay the same.
      inTurn(async () => void (await attempt(batch, deliveryId(), 1, true))).catch(() => {})
    },
  }
}

function pauseAfter({ retryAfterMs }: LocalAnswer, attempt: number): number {
  const planned = pausesMs[Math.min(attempt, pausesMs.length) - 1]!
  return Math.min(Math.max(planned, retryAfterMs), pauseMsMax)
}

/**
 * Decimal digits that are unique among the deliveries of this machine: receivers may drop a delivery whose id they
 * know.
 */
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

/** The line that is printed for an event, such as `12:00:01  cloudDocument CREATE export_...  #3  204 in 8 ms`. */
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

/** One delivery, with the same content that the service would post. */
interface Batch {
  /** At least one event, with consecutive numbers. */
  events: NumberedEvent[]
  /** The bytes that the service would send, which are those of JSON.stringify. */
  body: Uint8Array
  /** The numbers of its events, such as `1042-1061`. */
  sequence: string
  /** The epoch in which its events were numbered. */
  epoch: number | undefined
}

/**
 * Packs events into deliveries of up to 100 events and 90 KiB. A single larger event gets its own delivery.
 * @param page a page whose events have consecutive numbers
 */
export function* batchesOf({ events, epoch }: Pick<EventPage, 'events' | 'epoch'>): Generator<Batch> {
  for (let first = 0; first < events.length; ) {
    const texts: string[] = []
    let bytes = 0
    for (const { event } of events.slice(first, first + deliveryEventsMax)) {
      const text = JSON.stringify(event)
      bytes += Buffer.byteLength(text) + 1
      if (texts.length > 0 && bytes > deliveryBytesMax) break
      texts.push(text)
    }
    const packed = events.slice(first, first + texts.length)
    first += packed.length
    yield {
      events: packed,
      body: Buffer.from(`[${texts.join(',')}]`),
      sequence: `${packed[0]!.sequence}-${packed.at(-1)!.sequence}`,
      epoch,
    }
  }
}

type LocalAnswer = Awaited<ReturnType<typeof postLocally>>

/** Longest time for an attempt, as at the service (docs/spec/webhooks.md#retries). */
const timeoutMs = 10_000
const answerBytesMax = 1024

/**
 * Posts one delivery. Redirects are not followed, as with every delivery.
 * @returns `status`, null if there was no response, and `error`, which says why; the beginning of the `answer`; and how
 *   long Retry-After asks to wait, 0 without that header
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
  // Each delivery opens its own connection: a receiver that has restarted has closed the earlier ones.
  const sent = request(target, { method: 'POST', headers, agent: false, signal, lookup: lookupLocally })
  const late = new Error(`no response within ${timeoutMs / 1000} seconds`)
  const timer = setTimeout(() => sent.destroy(late), timeoutMs)
  sent.on('close', () => clearTimeout(timer))
  // Errors may also come after the response. The reader of its body then gets them.
  sent.on('error', () => {})
  sent.end(delivered.body)
  const [response] = await once(sent, 'response')
  return response
}

/**
 * By RFC 6761 names below localhost are this machine. A name server could lead the events elsewhere, so none is asked.
 */
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
    // The body broke off or timed out. The status had already come, and it alone decides.
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
