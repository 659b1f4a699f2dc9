/**
 * What becomes of a delivery after an attempt (contract, section 7). Pure: time and chance come in as arguments.
 *
 *   pending ----2xx----> delivered
 *   pending ----else---> pending, to be tried again after the next delay of the table
 *   pending ----else---> failed, when the table is used up, the answer was 410, or five days went by without a success;
 *                        the latter two disable the subscription
 *   failed  ---replay--> pending, by staff; the table counts anew
 */
import { limits } from '../../config.ts'

export const deliveryStates = ['pending', 'delivered', 'failed'] as const
export type DeliveryState = (typeof deliveryStates)[number]

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** Delays before the second attempt and those after it, milliseconds: eleven of them, about three days. */
export const retryDelaysMs = [
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

/** A receiver that is overrun may ask for more time than the table gives, but not to be forgotten. */
const retryAfterMsMax = day

export interface Attempted {
  /** Null: there was no answer within the time. */
  status: number | null
  /** The header, as it came. */
  retryAfter: string | null
  /** Attempts of this delivery since it was made, or last replayed, this one included. */
  attempts: number
  /** Of the subscription: the first failure since its last success before this attempt, epoch milliseconds. */
  failingSince: number | null
}

export type Decision =
  | { state: 'delivered' }
  /** Epoch milliseconds. */
  | { state: 'pending'; nextAttemptAt: number }
  /** `disable`: why the subscription gets nothing more until somebody enables it. */
  | { state: 'failed'; disable: string | null }

/**
 * @param now of the answer, epoch milliseconds
 * @param random from 0 up to 1: retries of many subscriptions that failed together must not come back together
 */
export function decide(attempted: Attempted, now: number, random: number): Decision {
  const { status, retryAfter, attempts } = attempted
  if (status !== null && status >= 200 && status <= 299) return { state: 'delivered' }
  if (status === 410) return { state: 'failed', disable: 'the receiver answered 410 Gone' }
  const giveUpAt = (attempted.failingSince ?? now) + limits.subscriptionFailingMsMax
  if (now >= giveUpAt) return { state: 'failed', disable: 'no delivery has succeeded for five days' }
  const delay = retryDelaysMs[attempts - 1]
  if (delay === undefined) return { state: 'failed', disable: null }
  const asked = Math.min(retryAfterMs(retryAfter, now), retryAfterMsMax)
  // The attempt that would come behind the five days comes at their end, as the last one.
  const planned = Math.min(now + delay * (1 + limits.deliveryJitter * random), giveUpAt)
  return { state: 'pending', nextAttemptAt: Math.ceil(Math.max(planned, now + asked)) }
}

/** Seconds or a date; 0 for anything else, and for a date that has passed. */
export function retryAfterMs(header: string | null, now: number): number {
  if (header === null) return 0
  if (/^\s*\d{1,9}\s*$/.test(header)) return Number(header) * second
  // Only the form that HTTP prescribes: Date.parse takes almost anything for a date.
  const at = /^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(header) ? Date.parse(header) : Number.NaN
  return at > now ? at - now : 0
}
