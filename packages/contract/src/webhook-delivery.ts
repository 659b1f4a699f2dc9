/**
 * The form of a delivery on the wire: its size, and its headers, by which a subscriber checks who sent it and when
 * (docs/spec/webhooks.md#deliveries). It carries two signatures: one is keyed with the partner secret; the other
 * follows Standard Webhooks and is keyed with the subscription's own secret. Both the service and `grandlivre listen`
 * send deliveries with this code. The subscribers' verifier shares no code with this file, so that an error in either
 * of them is noticed.
 */
import { createHash, createHmac } from 'node:crypto'

export const deliveryEventsMax = 100
/** Most bytes of a body, unless a single event is larger. */
export const deliveryBytesMax = 90 * 1024

export interface Delivered {
  /** Id of the delivery, in decimal digits. */
  id: string
  /** The body, exactly as it is sent and signed. */
  body: Uint8Array
  /** Time of sending, in epoch milliseconds. */
  date: number
  /** The partner secret. */
  secret: string
  /** Secrets of the subscription, newest first, each `whsec_` followed by base64. */
  signingSecrets: readonly string[]
  /** First and last number of its events, such as `1042-1061`; undefined if they have no numbers. */
  sequence: string | undefined
  /** The epoch in which its events were numbered; undefined if they have no numbers. */
  epoch: number | undefined
}

export const signingSecretPrefix = 'whsec_'

/** @param version of the sending program, for `user-agent` */
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
    // RFC 9530: with this digest a receiver can tell a changed body from a wrong secret.
    'content-digest': `sha-256=:${createHash('sha256').update(body).digest('base64')}:`,
    ...(sequence === undefined ? {} : { 'webhook-sequence': sequence }),
    ...(epoch === undefined ? {} : { 'webhook-epoch': String(epoch) }),
  }
}

/**
 * HMAC-SHA256 over the body, directly followed by the value of the `date` header.
 * @param body exactly the bytes that are sent
 * @param date epoch milliseconds, as in the header
 * @returns 64 hexadecimal digits
 */
export function signatureOf(secret: string, body: Uint8Array, date: string): string {
  return createHmac('sha256', secret).update(body).update(date).digest('hex')
}

/**
 * A signature of Standard Webhooks 1.0: HMAC-SHA256 over `id.timestamp.body`, keyed with the bytes of the secret.
 * @param timestamp epoch seconds, as in the header
 */
function standardSignatureOf(
  signingSecret: string,
  { id, timestamp, body }: { id: string; timestamp: string; body: Uint8Array },
): string {
  const key = Buffer.from(signingSecret.slice(signingSecretPrefix.length), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
}
