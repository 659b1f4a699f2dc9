import type { ClientBase, Pool } from 'pg'
import { z } from 'zod'
import type { Details } from '../audit/audit.sql.ts'
import { limits } from '../config.ts'
import { checkSent, replayFailedDeliveries, replayNumbers, replaySpan } from '../webhooks/replay.ts'
import { lockSubscription, numberInParts } from '../webhooks/sequence/numbering.sql.ts'
import { rotateSigningSecret } from '../webhooks/signing-secrets.sql.ts'
import {
  countedMax,
  listAttempts,
  readBacklog,
  readSubscription,
  type SubscriptionRecord,
} from '../webhooks/staff.sql.ts'
import {
  deleteSubscription,
  disableSubscription,
  enableSubscription,
  skipToLatest,
} from '../webhooks/subscriptions.sql.ts'
import { act, existing, type Recorded, Refused, type Secret } from './act.ts'
import { id, line, wholeNumber } from './fields.ts'

/**
 * @param counted deliveries are counted up to one more than this number; if absent, all are counted
 * @throws {Refused} if there is no such subscription
 */
export async function subscriptionOf(client: ClientBase | Pool, id: string, counted?: number) {
  return existing(await readSubscription(client, id, counted), `subscription ${id}`, 'webhook list')
}

/** The newest attempts of a delivery. @throws {Refused} if there was none */
export async function attemptsOf(
  client: ClientBase | Pool,
  subscriptionId: string,
  deliveryId: string,
  most: number,
) {
  const found = await listAttempts(client, subscriptionId, deliveryId, most)
  if (found.length > 0) return found
  const message = `There was no attempt of a delivery ${deliveryId} to subscription ${subscriptionId}`
  throw new Refused(404, message, { hint: `: see webhook deliveries ${subscriptionId}` })
}

/** Locks a subscription until the transaction ends. @throws {Refused} if there is no such subscription */
export async function lockWebhook(client: ClientBase, id: string): Promise<SubscriptionRecord> {
  await lockSubscription(client, id)
  return subscriptionOf(client, id, 0)
}

export function subscriptionRecord(
  { id: subscriptionId, partnerCode, schemaId }: Pick<SubscriptionRecord, 'id' | 'partnerCode' | 'schemaId'>,
  details: Details = {},
): Recorded {
  return { partner: partnerCode, schemaId, details: { subscriptionId, ...details } }
}

export function signingSecret(value: string): Secret {
  return { label: 'Signing secret', value, use: 'The receiver checks webhook-signature with it.' }
}

const idOfSubscription = id.meta({ help: 'of the subscription' })

export const enableWebhook = act({
  name: 'webhook enable',
  fields: z.object({
    id: idOfSubscription,
    latest: z.literal([true, 'yes'], 'must be yes').optional().meta({
      help: 'skip events that were not delivered yet; they can still be replayed or read by number',
    }),
  }),
  run: async (client, { id: subscriptionId, latest: given }) => {
    const latest = given !== undefined
    const locked = await lockWebhook(client, subscriptionId)
    if (latest) await numberInParts((run) => run(client), subscriptionId)
    if (!(await enableSubscription(client, subscriptionId)))
      throw new Refused(409, `Subscription ${subscriptionId} is enabled already`)
    if (latest) await skipToLatest(client, subscriptionId)
    const enabled = (await readSubscription(client, subscriptionId, countedMax))!
    const { events, eventsMax } = await readBacklog(client, enabled, countedMax)
    const waiting =
      events === 1 ? '1 event waits' : `${events > eventsMax ? `more than ${eventsMax}` : events} events wait`
    const skipped = latest ? ' What was not delivered before is skipped, and can be replayed.' : ''
    return {
      ...subscriptionRecord(locked, { latest }),
      says: `Subscription ${subscriptionId} goes on after number ${enabled.collected}: ${waiting}.${skipped}`,
    }
  },
})

/** The reason that is recorded if staff give none. */
export const disabledReason = 'Disabled by staff'

export const disableWebhook = act({
  name: 'webhook disable',
  fields: z.object({
    id: idOfSubscription,
    reason: line.meta({ default: disabledReason, help: 'for its partner and other staff' }),
  }),
  run: async (client, { id: subscriptionId, reason }) => {
    const locked = await lockWebhook(client, subscriptionId)
    if (!(await disableSubscription(client, subscriptionId, reason, Date.now())))
      throw new Refused(409, `Subscription ${subscriptionId} is disabled already`)
    return {
      ...subscriptionRecord(locked, { reason }),
      says: `Subscription ${subscriptionId} is disabled: nothing is sent until it is enabled.`,
    }
  },
})

export const rotateWebhookSecret = act({
  name: 'webhook rotate-secret',
  fields: z.object({ id: idOfSubscription }),
  run: async (client, { id: subscriptionId }, masterKeys) => {
    const locked = await lockWebhook(client, subscriptionId)
    const secret = await rotateSigningSecret(client, subscriptionId, masterKeys)
    return {
      ...subscriptionRecord(locked),
      says: `Subscription ${subscriptionId} has a new signing secret; the previous one signs beside it for 24 hours.`,
      secret: signingSecret(secret),
    }
  },
})

export const deleteWebhook = act({
  name: 'webhook delete',
  fields: z.object({ id: idOfSubscription }),
  run: async (client, { id: subscriptionId }) => {
    const locked = await lockWebhook(client, subscriptionId)
    await deleteSubscription(client, subscriptionId)
    return { ...subscriptionRecord(locked), says: `Subscription ${subscriptionId} is deleted.` }
  },
})

/** All kinds of replay have this name in the audit. The details state which deliveries staff asked for. */
const replay = 'event replay'

/** Locks a subscription that can receive events. @throws {Refused} if nothing can be sent to it */
async function lockReceiving(client: ClientBase, subscriptionId: string): Promise<SubscriptionRecord> {
  const locked = await lockWebhook(client, subscriptionId)
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

const sentAgain = (count: number, one: string, many: string) =>
  count === 1 ? `1 ${one} is sent again.` : `${count} ${many} are sent again.`

export const replayFailed = act({
  name: replay,
  fields: z.object({ id }),
  run: async (client, { id: subscriptionId }) => {
    const locked = await lockReceiving(client, subscriptionId)
    const deliveries = await replayFailedDeliveries(client, subscriptionId)
    if (deliveries === 0) throw new Refused(409, `Subscription ${subscriptionId} has no failed delivery`)
    return {
      ...subscriptionRecord(locked, { failed: true, deliveries }),
      says: sentAgain(deliveries, 'failed delivery', 'failed deliveries'),
    }
  },
})

const number = wholeNumber(1, Number.MAX_SAFE_INTEGER)

/**
 * Sends events again, by their numbers. Events that retention has deleted cannot be sent.
 * @throws {AppError} ERR-VALIDATION for a number after the last one that was sent
 */
export const replayNumbered = act({
  name: replay,
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
      says: sentAgain(events, 'event', 'events'),
    }
  },
})

/** Sends the events of a time span again. */
export const replayHappened = act({
  name: replay,
  fields: z
    .object({ id, from: z.date(), to: z.date().default(() => new Date()) })
    .refine(({ from, to }) => from < to, { path: ['from'], error: 'must be before to, and in the past' }),
  run: async (client, { id: subscriptionId, from, to }) => {
    const locked = await lockReceiving(client, subscriptionId)
    const span = { from: from.getTime(), to: to.getTime() }
    const events = await replaySpan(client, locked, span)
    return {
      ...subscriptionRecord(locked, { events, from: from.toISOString(), to: to.toISOString() }),
      says: sentAgain(events, 'event', 'events'),
    }
  },
})
