import { createHmac } from 'node:crypto'

/**
 * Signs a delivery, to prove to the subscriber who sent it and when: HMAC-SHA256 keyed with the partner secret, over
 * the body followed directly by the value of the `date` header (docs/spec/webhooks.md#signature).
 * @param body exactly the bytes that are sent
 * @param date epoch milliseconds, as in the header
 * @returns 64 hexadecimal digits
 */
export function signatureOf(secret: string, body: Buffer, date: string): string {
  return createHmac('sha256', secret).update(body).update(date).digest('hex')
}
