/**
 * Decides the state of a delivery after an attempt (docs/spec/webhooks.md#retries). Pure: time and chance are arguments.
 *
 *   pending ----2xx----> delivered
 *   pending ----else---> pending, retried after the next delay of the table
 *   pending ----else---> pending, if the answer was 410 or five days passed without a success: the subscription is
 *                        disabled, and goes on with this delivery when it is enabled
 *   pending ----else---> failed, if the table is used up
 *   failed  ---replay--> pending, by staff; the table starts over
 */
import { limits } from '../../config.ts'

export const deliveryStates = ['pending', 'delivered', 'failed'] as const
export type DeliveryState = (typeof deliveryStates)[number]

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** Delays before the second and later attempts, in milliseconds: eleven delays, about three days in all. */
const retryDelaysMs = [
  5 * second,
  30 * second,
  2 * minute,
  10 * minute,
  30 * minute,
  hour,
  3 * hour,
  6 * hour,
  12 * hour,
  24 * hour,
  24 * hour,
] as const

/** Upper bound for Retry-After. An overloaded receiver may ask for a longer delay than the table gives, up to a day. */
const retryAfterMsMax = day

export interface Attempted {
  /** HTTP status; null if no response arrived in time. */
  status: number | null
  /** The header Retry-After, as received. */
  retryAfter: string | null
  /** Attempts of this delivery since it was created or last replayed, including this one. */
  attempts: number
  /** Epoch milliseconds: the subscription's first failure since its last success, not counting this attempt. */
  failingSince: number | null
  /**
   * Epoch milliseconds: the time for which an attempt was planned, if it was woken early; null or past for any other
   * attempt.
   */
  plannedAt: number | null
}

export type Decision =
  | { state: 'delivered' }
  /**
   * `nextAttemptAt`: epoch milliseconds. `disable`: the reason to disable the subscription; null if it stays enabled.
   */
  | { state: 'pending'; nextAttemptAt: number; disable: string | null }
  | { state: 'failed' }

/**
 * @param now time of the response, epoch milliseconds
 * @param random at least 0 and less than 1: spreads the retries of subscriptions that failed together
 */
export function decide(attempted: Attempted, now: number, random: number): Decision {
  const { status, retryAfter, attempts } = attempted
  if (isSuccess(status)) return { state: 'delivered' }
  const disabled = (disable: string): Decision => ({ state: 'pending', nextAttemptAt: now, disable })
  if (status === 410) return disabled('the receiver answered 410 Gone')
  const giveUpAt = (attempted.failingSince ?? now) + limits.subscriptionFailingMsMax
  if (now >= giveUpAt) return disabled('no delivery has succeeded for five days')
  const delay = retryDelaysMs[attempts - 1]
  if (delay === undefined) return { state: 'failed' }
  const requestedMs = Math.min(retryAfterMs(retryAfter, now), retryAfterMsMax)
  // If the next attempt would come after the five days, it comes at their end instead, as the last one.
  const plannedAt = attempted.plannedAt ?? 0
  const next = plannedAt > now ? plannedAt : now + delay * (1 + limits.deliveryJitter * random)
  const planned = Math.min(next, giveUpAt)
  const nextAttemptAt = Math.ceil(Math.max(planned, now + requestedMs))
  return { state: 'pending', nextAttemptAt, disable: null }
}

export function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status <= 299
}

/** Parses a number of seconds or a date. Returns 0 for anything else, and for a date in the past. */
export function retryAfterMs(header: string | null, now: number): number {
  if (header === null) return 0
  if (/^\s*\d{1,9}\s*$/.test(header)) return Number(header) * second
  // Accepts only the date format of HTTP: Date.parse accepts almost anything.
  const at = /^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(header) ? Date.parse(header) : Number.NaN
  return at > now ? at - now : 0
}
