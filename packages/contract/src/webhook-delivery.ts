/**
 * What a delivery is on the wire: its size, and its headers, by which a subscriber checks who sent it and when
 * (docs/spec/webhooks.md#deliveries). There are two signatures: one keyed with the partner secret, one by the rules of
 * Standard Webhooks with the subscription's own. The service sends deliveries, and so does `grandlivre listen`. The
 * verifier of subscribers shares no code with this file, so that an error in one of the two shows.
 */
import { createHash, createHmac } from 'node:crypto'

export const deliveryEventsMax = 100
/** Bytes of a body, unless a single event has more. */
export const deliveryBytesMax = 90 * 1024

export interface Delivered {
  /** Of the delivery: decimal digits. */
  id: string
  /** Exactly the bytes that are sent, and signed. */
  body: Uint8Array
  /** Time of sending, epoch milliseconds. */
  date: number
  /** The partner secret. */
  secret: string
  /** Secrets of the subscription, newest first; `whsec_` and base64. */
  signingSecrets: readonly string[]
  /** First and last number of its events: `1042-1061`; undefined if they have none. */
  sequence: string | undefined
  /** In which its events got their numbers; undefined if they have none. */
  epoch: number | undefined
}

export const signingSecretPrefix = 'whsec_'

/** @param version of the sender, for `user-agent` */
export function deliveryHeaders(
  { id, body, date, secret, signingSecrets, sequence, epoch }: Delivered,
  version: string,
): Record<string, string> {
  const timestamp = String(Math.floor(date / 1000))
  const signed = { id, timestamp, body }
  return {
    'content-type': 'application/json',
    'user-agent': `Grandlivre/${version}`,
    date: String(date),
    signature: signatureOf(secret, body, String(date)),
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signingSecrets.map((each) => standardSignatureOf(each, signed)).join(' '),
    // RFC 9530: lets a receiver tell a changed body from a wrong secret.
    'content-digest': `sha-256=:${createHash('sha256').update(body).digest('base64')}:`,
    ...(sequence === undefined ? {} : { 'webhook-sequence': sequence }),
    ...(epoch === undefined ? {} : { 'webhook-epoch': String(epoch) }),
  }
}

/**
 * HMAC-SHA256 over the body followed directly by the value of the `date` header.
 * @param body exactly the bytes that are sent
 * @param date epoch milliseconds, as in the header
 * @returns 64 hexadecimal digits
 */
export function signatureOf(secret: string, body: Uint8Array, date: string): string {
  return createHmac('sha256', secret).update(body).update(date).digest('hex')
}

/**
 * One signature of Standard Webhooks 1.0: HMAC-SHA256 over `id.timestamp.body`, keyed with the bytes of the secret.
 * @param timestamp epoch seconds, as in the header
 */
function standardSignatureOf(
  signingSecret: string,
  { id, timestamp, body }: { id: string; timestamp: string; body: Uint8Array },
): string {
  const key = Buffer.from(signingSecret.slice(signingSecretPrefix.length), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
}
