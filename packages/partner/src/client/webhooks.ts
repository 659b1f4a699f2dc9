/**
 * For subscribers: verifies that a request is a recent delivery from Grandlivre (docs/spec/webhooks.md#signatures).
 * This file depends only on Node, so it can be copied as it is.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'

export interface WebhookEvent {
  /** Kind of event: `cloudDocument`, `accountingLineEntry` ..., or `ping`. */
  name: string
  operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'VOID'
  scope: {
    schemaId: number
    firmId?: number
    firmSIRET?: string
    accountingFolderId?: number
    accountingFolderRef?: string
    accountingFolderSIRET?: string
    persPhysiqueId?: number
  }
  /** What is needed to fetch the object that the event is about. Its fields depend on kind and operation. */
  // biome-ignore lint/suspicious/noExplicitAny: each kind has fields of its own
  data: any
  /** A UUID that stays the same whenever this event is sent to this subscription. Use it to drop repeats. */
  webhookId: string
  /** When the event happened, in epoch milliseconds. */
  createdAt: number
}

export interface WebhookRequest {
  /** The partner secret, to verify `signature`. During a rotation give the old and the new one, in any order. */
  secret?: string | readonly string[]
  /**
   * The signing secret of the subscription, `whsec_...`, to verify `webhook-signature` (Standard Webhooks). If several
   * are given, any may match. If `secret` is given, too, both signatures must be right.
   */
  signingSecret?: string | readonly string[]
  /** Headers of the request: a fetch `Headers`, or an object as in node:http. */
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>
  /** The raw body, before any parsing. */
  body: string | Uint8Array
  /** The current time in epoch milliseconds. Default: now. */
  now?: number
  /** Most milliseconds between the time of sending and `now`, in either direction. Default: five minutes. */
  toleranceMs?: number
  /**
   * Number of the last event that you have, 0 before the first. With it the result says which events are `missing`
   * before this delivery. It must be a number, not a text.
   */
  lastSequence?: number
}

/** The reasons for which `verifyWebhook` refuses a delivery, by code. */
export const refusalReasons = {
  'signature-missing': 'The header signature is missing, or is not 64 hexadecimal digits',
  'date-missing': 'The header date is missing, or is not a number of milliseconds',
  'webhook-headers-missing':
    'The header webhook-id, webhook-timestamp or webhook-signature is missing or malformed',
  'signature-wrong': 'The signature was made with another secret, or for another body, id or time',
  'body-changed': 'The body is not the one that was sent: its digest differs. Verify it before any parsing',
  'date-too-old': 'The time of sending is too old: the request may have been recorded and sent again',
  'date-in-future': 'The time of sending is in the future: one of the two clocks is wrong',
  'body-without-events': 'The body is signed, but is not a JSON array of events',
} as const

export type WebhookRefusal = keyof typeof refusalReasons

export type VerifiedWebhook =
  | {
      valid: true
      /** The events, in the order in which they happened. */
      events: WebhookEvent[]
      /** When this attempt was sent, in epoch milliseconds. */
      sentAt: number
      /** Id of the delivery, which is the same at each attempt; null if the request has no such header. */
      deliveryId: string | null
      /** Numbers of the first and the last event; null for a ping, which has none. */
      sequence: { first: number; last: number } | null
      /**
       * Numbers between `lastSequence` and this delivery, whose events never arrived; null if there are none. Read them
       * with `GET /api/v1/webhook/{id}/events?after=<from - 1>`. The header they come from is not signed. Numbers jump
       * by millions when `epoch` changes: events may then have been lost with a server, so ask each ledger for what
       * changed (`since`).
       */
      missing: { from: number; to: number } | null
      /** The epoch in which these events were numbered: store it with their numbers. Null if there is no `sequence`. */
      epoch: number | null
    }
  | {
      /** Answer the request with 401. */
      valid: false
      reason: WebhookRefusal
      /** The reason as a sentence, for logs. */
      message: string
      /**
       * A body for the 401, as `application/json`: the reason and the message. The owner of the subscription and
       * `grandlivre webhook doctor` then see them. It contains nothing secret.
       */
      body: string
    }

/**
 * Verifies a delivery, comparing signatures in constant time.
 *
 * - With `secret`: HMAC-SHA256 in hexadecimal, keyed with the partner secret, over the body followed by the value of
 * the `date` header.
 * - With `signingSecret`: Standard Webhooks, HMAC-SHA256 in base64 over `id.timestamp.body`.
 *
 * @throws {TypeError} if called without a secret, with a parsed body, or with a `lastSequence` that is not a whole
 *   number
 */
export function verifyWebhook(request: WebhookRequest): VerifiedWebhook {
  const { headers, body, lastSequence } = request
  if (request.secret === undefined && request.signingSecret === undefined)
    throw new TypeError('verifyWebhook needs the partner secret or the signing secret of the subscription')
  if (typeof body !== 'string' && !(body instanceof Uint8Array))
    throw new TypeError('verifyWebhook needs the raw body: its text or bytes, not a parsed value')
  // A text, for example from a database, would be joined with 1 instead of added, which would hide every gap.
  if (lastSequence !== undefined && !(Number.isSafeInteger(lastSequence) && lastSequence >= 0))
    throw new TypeError('verifyWebhook needs lastSequence as a whole number, 0 before the first event')
  let sentAt: number | undefined
  for (const check of [checkPartnerSignature, checkStandardSignature]) {
    const checked = check(request)
    if (checked === 'signature-wrong' && isBodyChanged(request)) return refused('body-changed')
    if (typeof checked === 'string') return refused(checked)
    sentAt ??= checked
  }
  const events = parse(body)
  if (!Array.isArray(events) || !events.every((event) => typeof event === 'object' && event !== null))
    return refused('body-without-events')
  const sequence = sequenceOf(headers)
  const isGap = sequence !== null && lastSequence !== undefined && sequence.first > lastSequence + 1
  return {
    valid: true,
    events,
    sentAt: sentAt!,
    deliveryId: headerOf(headers, 'webhook-id') ?? null,
    sequence,
    epoch: epochOf(headers),
    missing: isGap ? { from: lastSequence + 1, to: sequence.first - 1 } : null,
  }
}

/** @returns the time of sending, the reason for a refusal, or undefined if no partner secret was given */
function checkPartnerSignature(request: WebhookRequest): number | WebhookRefusal | undefined {
  const { secret, headers, body } = request
  if (secret === undefined) return undefined
  const secrets = [secret].flat()
  // An empty secret proves nothing. Most likely a setting is missing.
  if (secrets.length === 0 || secrets.some((each) => typeof each !== 'string' || each === ''))
    throw new TypeError('verifyWebhook needs the partner secret')
  const signature = headerOf(headers, 'signature')
  if (signature === undefined || !/^[0-9a-f]{64}$/i.test(signature)) return 'signature-missing'
  const date = headerOf(headers, 'date')
  if (date === undefined || !/^\d{1,15}$/.test(date)) return 'date-missing'
  const given = Buffer.from(signature, 'hex')
  const fits = secrets.map((each) =>
    timingSafeEqual(createHmac('sha256', each).update(body).update(date).digest(), given),
  )
  return fits.includes(true) ? checkTime(Number(date), request) : 'signature-wrong'
}

/** @returns the same as `checkPartnerSignature` */
function checkStandardSignature(request: WebhookRequest): number | WebhookRefusal | undefined {
  const { signingSecret, headers, body } = request
  if (signingSecret === undefined) return undefined
  const secrets = [signingSecret].flat()
  if (secrets.length === 0 || secrets.some((each) => !/^whsec_[A-Za-z0-9+/]{22,}=*$/.test(each)))
    throw new TypeError(
      'verifyWebhook needs the signing secret of the subscription, which begins with whsec_',
    )
  const id = headerOf(headers, 'webhook-id')
  const timestamp = headerOf(headers, 'webhook-timestamp')
  // While the secret is being rotated, there are several signatures, separated by blanks.
  const given = (headerOf(headers, 'webhook-signature') ?? '')
    .split(' ')
    .filter((each) => /^v1,[A-Za-z0-9+/]{43}=$/.test(each))
    .map((each) => Buffer.from(each.slice('v1,'.length), 'base64'))
  if (!id || timestamp === undefined || !/^\d{1,12}$/.test(timestamp) || given.length === 0)
    return 'webhook-headers-missing'
  const fits = secrets.flatMap((each) => {
    const key = Buffer.from(each.slice('whsec_'.length), 'base64')
    const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
    return given.map((signature) => timingSafeEqual(expected, signature))
  })
  return fits.includes(true) ? checkTime(Number(timestamp) * 1000, request) : 'signature-wrong'
}

/** @param sentAt epoch milliseconds, covered by the signature */
function checkTime(sentAt: number, { now = Date.now(), toleranceMs = 5 * 60_000 }: WebhookRequest) {
  if (sentAt < now - toleranceMs) return 'date-too-old'
  return sentAt > now + toleranceMs ? 'date-in-future' : sentAt
}

/** Whether the header content-digest (RFC 9530) does not match the body. */
function isBodyChanged({ headers, body }: WebhookRequest): boolean {
  const digest = headerOf(headers, 'content-digest')?.match(/^sha-256=:([^:]*):$/)?.[1]
  return digest !== undefined && digest !== createHash('sha256').update(body).digest('base64')
}

/** Reads `webhook-sequence: 1042-1061`. */
function sequenceOf(headers: WebhookRequest['headers']): { first: number; last: number } | null {
  const [, first, last] = headerOf(headers, 'webhook-sequence')?.match(/^(\d{1,15})-(\d{1,15})$/) ?? []
  return first === undefined ? null : { first: Number(first), last: Number(last) }
}

/** Reads `webhook-epoch: 583920114`. */
function epochOf(headers: WebhookRequest['headers']): number | null {
  const epoch = headerOf(headers, 'webhook-epoch')
  return epoch !== undefined && /^\d{1,15}$/.test(epoch) ? Number(epoch) : null
}

function refused(reason: WebhookRefusal): VerifiedWebhook {
  const message = refusalReasons[reason]
  return { valid: false, reason, message, body: JSON.stringify({ reason, message }) }
}

/** The value of a header. A header that was sent twice counts as missing, because either value may be wrong. */
function headerOf(headers: WebhookRequest['headers'], name: string): string | undefined {
  if (isHeaders(headers)) return headers.get(name) ?? undefined
  const found = Object.keys(headers).filter((key) => key.toLowerCase() === name)
  const value = found.length === 1 ? headers[found[0]!] : undefined
  return typeof value === 'string' ? value : undefined
}

/** Recognizes Headers by their method, because frameworks bring classes of their own. */
function isHeaders(headers: WebhookRequest['headers']): headers is Headers {
  return typeof headers['get'] === 'function'
}

function parse(body: string | Uint8Array): unknown {
  try {
    return JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body))
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
