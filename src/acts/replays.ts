/** Deliveries sent again by staff. The audit has one name for all of them, with what was asked for. */
import type { ClientBase } from 'pg'
import { z } from 'zod'
import { limits } from '../config.ts'
import { checkSent, replayFailedDeliveries, replayNumbers, replaySpan } from '../webhooks/replay.ts'
import type { LockedSubscription } from '../webhooks/staff.sql.ts'
import { act, Refused } from './act.ts'
import { id, wholeNumber } from './fields.ts'
import { lockOne, subscriptionRecord } from './subscriptions.ts'

const name = 'event replay'

/** @throws {Refused} if nothing can be sent to the subscription */
async function lockReceiving(client: ClientBase, subscriptionId: string): Promise<LockedSubscription> {
  const locked = await lockOne(client, subscriptionId)
  if (locked.postUrl === null)
    throw new Refused(
      409,
      `Nothing is posted to subscription ${subscriptionId}: its events are read by number`,
    )
  if (locked.enabled) return locked
  throw new Refused(
    409,
    `Subscription ${subscriptionId} is disabled and would receive nothing: enable it first`,
    { hint: ` (webhook enable ${subscriptionId})` },
  )
}

const sentAgain = (count: number, what: string) =>
  `${count} ${what} ${count === 1 ? 'is' : 'are'} sent again.`

export const replayFailed = act({
  name,
  fields: z.object({ id }),
  run: async (client, { id: subscriptionId }) => {
    const locked = await lockReceiving(client, subscriptionId)
    const deliveries = await replayFailedDeliveries(client, subscriptionId)
    if (deliveries === 0) throw new Refused(409, `Subscription ${subscriptionId} has no failed delivery`)
    return {
      ...subscriptionRecord(locked, { failed: true, deliveries }),
      says: sentAgain(deliveries, deliveries === 1 ? 'failed delivery' : 'failed deliveries'),
    }
  },
})

const number = wholeNumber(1, Number.MAX_SAFE_INTEGER)

/** By their numbers, as far as they are kept. @throws {AppError} ERR-VALIDATION for a number that was not sent yet */
export const replayNumbered = act({
  name,
  fields: z
    .object({ id, from: number, to: number })
    .refine(({ from, to }) => from <= to, { path: ['to'], error: 'must be at least from' })
    .refine(({ from, to }) => to - from < limits.replayedEventsMax, {
      path: ['to'],
      error: `must be less than ${limits.replayedEventsMax} after from: send the rest again afterwards`,
    }),
  run: async (client, { id: subscriptionId, from, to }) => {
    const locked = await lockReceiving(client, subscriptionId)
    checkSent(to, locked)
    const numbers = { first: from, last: to }
    const { deliveries, events } = await replayNumbers(client, subscriptionId, numbers)
    if (deliveries === 0)
      throw new Refused(409, `No event from ${from} to ${to} is kept for subscription ${subscriptionId}`)
    return {
      ...subscriptionRecord(locked, { from, to, deliveries }),
      says: sentAgain(events, events === 1 ? 'event' : 'events'),
    }
  },
})

/** What happened in a time span. */
export const replayHappened = act({
  name,
  fields: z
    .object({ id, from: z.date(), to: z.date().default(() => new Date()) })
    .refine(({ from, to }) => from < to, { path: ['from'], error: 'must be before to, and in the past' }),
  run: async (client, { id: subscriptionId, from, to }) => {
    const locked = await lockReceiving(client, subscriptionId)
    const span = { from: from.getTime(), to: to.getTime() }
    const events = await replaySpan(client, locked, span)
    return {
      ...subscriptionRecord(locked, { events, from: from.toISOString(), to: to.toISOString() }),
      says: sentAgain(events, events === 1 ? 'event' : 'events'),
    }
  },
})
