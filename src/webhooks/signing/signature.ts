/**
 * The headers by which a subscriber checks who sent a delivery and when (docs/spec/webhooks.md#signatures). There are
 * two signatures: one keyed with the partner secret, one by the rules of Standard Webhooks with the subscription's own.
 */
import { createHash, createHmac } from 'node:crypto'
import { signingSecretPrefix } from '../../auth/secrets.ts'

/** What is signed. */
export interface Signed {
  /** Of the delivery: decimal digits. */
  id: string
  /** Exactly the bytes that are sent. */
  body: Buffer
  /** Time of sending, epoch milliseconds. */
  date: number
  /** The partner secret. */
  secret: string
  /** Secrets of the subscription, newest first; `whsec_` and base64. */
  signingSecrets: readonly string[]
}

export function signedHeaders({ id, body, date, secret, signingSecrets }: Signed): Record<string, string> {
  const timestamp = String(Math.floor(date / 1000))
  return {
    date: String(date),
    signature: signatureOf(secret, body, String(date)),
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signingSecrets
      .map((each) => standardSignatureOf(each, { id, timestamp, body }))
      .join(' '),
    'content-digest': contentDigestOf(body),
  }
}

/**
 * HMAC-SHA256 over the body followed directly by the value of the `date` header.
 * @param body exactly the bytes that are sent
 * @param date epoch milliseconds, as in the header
 * @returns 64 hexadecimal digits
 */
export function signatureOf(secret: string, body: Buffer, date: string): string {
  return createHmac('sha256', secret).update(body).update(date).digest('hex')
}

/**
 * One signature of Standard Webhooks 1.0: HMAC-SHA256 over `id.timestamp.body`, keyed with the bytes of the secret.
 * @param timestamp epoch seconds, as in the header
 */
export function standardSignatureOf(
  signingSecret: string,
  { id, timestamp, body }: { id: string; timestamp: string; body: Buffer },
): string {
  const key = Buffer.from(signingSecret.slice(signingSecretPrefix.length), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
}

/** RFC 9530: lets a receiver tell a changed body from a wrong secret. */
function contentDigestOf(body: Buffer): string {
  return `sha-256=:${createHash('sha256').update(body).digest('base64')}:`
}
