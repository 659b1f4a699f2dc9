/** What the service tells about a receiver (docs/spec/webhooks.md). Times are epoch milliseconds. */
import type { WebhookAttempt, WebhookDelivery, WebhookPing } from '../../client/api/routes.ts'

export interface Seen {
  /** The address of the receiver. */
  postUrl: string
  ping: WebhookPing
  /** The newest ones, in order. */
  deliveries: WebhookDelivery[]
  /** The clock of this machine when the ping was answered. */
  now: number
}

/** @returns whether the answer is a 2xx */
export function isAccepted({ status }: Pick<WebhookAttempt, 'status'>): boolean {
  return status !== null && status >= 200 && status <= 299
}
