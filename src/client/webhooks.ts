/**
 * For subscribers: verifies that a request is a recent delivery from Grandlivre (docs/spec/webhooks.md#signature). This
 * file depends on Node alone, so it can be copied as it is.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'

export interface WebhookEvent {
  /** Kind of event: `cloudDocument`, `accountingLineEntry` ... */
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
  /** What is needed to fetch the object concerned; its fields depend on kind and operation. */
  // biome-ignore lint/suspicious/noExplicitAny: each kind has fields of its own
  data: any
  /** A UUID, identical whenever this event is sent to this subscription. Use it to drop repeats. */
  webhookId: string
  /** Epoch milliseconds. */
  createdAt: number
}

export interface WebhookRequest {
  /** The partner secret. During a rotation the old and the new one, in any order. */
  secret: string | readonly string[]
  /** Headers of the request: a fetch `Headers`, or an object as in node:http. */
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>
  /** The raw body, before any parsing. */
  body: string | Uint8Array
  /** Epoch milliseconds. Default: now. */
  now?: number
  /** How far the date may be from `now`, in either direction. Default: five minutes. */
  toleranceMs?: number
}

const reasons = {
  'signature-missing': 'The header signature is missing, or is not 64 hexadecimal digits',
  'date-missing': 'The header date is missing, or is not a number of milliseconds',
  'signature-wrong': 'The signature was made with another secret, or for another body or date',
  'date-too-old': 'The date is too old: the request may have been recorded and sent again',
  'date-in-future': 'The date is in the future: one of the two clocks is wrong',
  'body-without-events': 'The body is signed, but is not a JSON array of events',
} as const

export type WebhookRefusal = keyof typeof reasons

export type VerifiedWebhook =
  | {
      valid: true
      /** In the order in which they happened. */
      events: WebhookEvent[]
      /** When this attempt was sent, epoch milliseconds. */
      sentAt: number
    }
  | {
      /** Answer it with 401. */
      valid: false
      reason: WebhookRefusal
      /** The reason as a sentence, for logs. */
      message: string
    }

/**
 * Verifies a delivery: HMAC-SHA256 in hexadecimal, keyed with the partner secret, over the body followed by the value
 * of the `date` header. Compares in constant time.
 * @throws {TypeError} if called without a secret, or with a body that was parsed already
 */
export function verifyWebhook(request: WebhookRequest): VerifiedWebhook {
  const { headers, body, now = Date.now(), toleranceMs = 5 * 60_000 } = request
  const secrets = [request.secret].flat()
  // An empty secret proves nothing. Most likely a setting is missing.
  if (secrets.length === 0 || secrets.some((secret) => typeof secret !== 'string' || secret === ''))
    throw new TypeError('verifyWebhook needs the partner secret')
  if (typeof body !== 'string' && !(body instanceof Uint8Array))
    throw new TypeError('verifyWebhook needs the raw body: its text or bytes, not a parsed value')
  const signature = headerOf(headers, 'signature')
  if (signature === undefined || !/^[0-9a-f]{64}$/i.test(signature)) return refused('signature-missing')
  const date = headerOf(headers, 'date')
  if (date === undefined || !/^\d{1,15}$/.test(date)) return refused('date-missing')
  const given = Buffer.from(signature, 'hex')
  const fits = secrets.map((secret) =>
    timingSafeEqual(createHmac('sha256', secret).update(body).update(date).digest(), given),
  )
  if (!fits.includes(true)) return refused('signature-wrong')
  const sentAt = Number(date)
  if (sentAt < now - toleranceMs) return refused('date-too-old')
  if (sentAt > now + toleranceMs) return refused('date-in-future')
  const events = parse(body)
  return Array.isArray(events) ? { valid: true, events, sentAt } : refused('body-without-events')
}

function refused(reason: WebhookRefusal): VerifiedWebhook {
  return { valid: false, reason, message: reasons[reason] }
}

/** Undefined also for a header that was sent twice: either value may be the wrong one. */
function headerOf(headers: WebhookRequest['headers'], name: string): string | undefined {
  if (isHeaders(headers)) return headers.get(name) ?? undefined
  const found = Object.keys(headers).filter((key) => key.toLowerCase() === name)
  const value = found.length === 1 ? headers[found[0]!] : undefined
  return typeof value === 'string' ? value : undefined
}

/** By its method: frameworks bring Headers classes of their own. */
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
