/**
 * The routes by which owners read their deliveries, have them sent again (docs/spec/webhooks.md#reading-deliveries),
 * and send pings.
 */
import { z } from '@hono/zod-openapi'
import { limits } from '../../../config.ts'
import { idPattern } from '../../../db/literal.ts'
import { named } from '../../../formats/items/values.ts'
import { deliveryStates } from '../../../webhooks/dispatch/delivery.ts'
import { noResponseFaults } from '../../../webhooks/dispatch/fault.ts'
import {
  listOwnAttempts,
  listOwnDeliveries,
  type OwnAttempt,
  type OwnDelivery,
} from '../../../webhooks/owner/deliveries.sql.ts'
import { type Pinged, ping } from '../../../webhooks/owner/ping.ts'
import { replayOwn } from '../../../webhooks/replay.ts'
import { findOwnSubscription } from '../../../webhooks/subscriptions.sql.ts'
import { checkBody } from '../../body.ts'
import { id, oneOf, optional, wholeNumber } from '../../query.ts'
import { inJson, type Route } from '../../route.ts'
import { webhookRoute } from './own-subscription.ts'

/** One attempt at a delivery (docs/spec/webhooks.md#attempts). */
const Attempt = z
  .object({
    at: z.number().int().openapi({ description: 'Time of sending, epoch milliseconds' }),
    status: z.number().int().nullable().openapi({ description: 'Null: there was no response' }),
    milliseconds: z
      .number()
      .int()
      .openapi({ description: 'Until the status arrived, or until the attempt failed' }),
    error: z.string().nullable().openapi({ description: 'Why there was no response' }),
    answer: z.string().nullable().openapi({
      description: 'The first 1,024 bytes of the response, read as UTF-8. Null: there was no response',
    }),
  })
  .openapi('WebhookAttempt')

function shownAttempt({
  at,
  status,
  latencyMs,
  error,
  answer,
}: Pick<OwnAttempt, 'at' | 'status' | 'latencyMs' | 'error' | 'answer'>): z.output<typeof Attempt> {
  const text = answer && new TextDecoder().decode(answer.subarray(0, limits.shownAnswerBytes))
  return { at, status, milliseconds: latencyMs, error, answer: text }
}

const time = z.number().int()

const WebhookDelivery = named('WebhookDelivery', {
  id: z.string().openapi({ description: 'The header webhook-id', example: '4711' }),
  sequence: z.string().nullable().openapi({
    description: 'The header webhook-sequence. Null: from before events had numbers',
    example: '1042-1061',
  }),
  events: z.number().int(),
  state: z.enum(deliveryStates).openapi('DeliveryState'),
  replay: z.boolean().openapi({ description: 'Whether it was replayed' }),
  createdAt: time.openapi({ description: 'Epoch milliseconds, as the other times' }),
  nextAttemptAt: time.nullable().openapi({ description: 'Null: it has ended' }),
  finishedAt: time.nullable().openapi({ description: 'Null: it is pending' }),
  attempts: z
    .array(Attempt.extend({ number: z.number().int() }).openapi('WebhookDeliveryAttempt'))
    .openapi({ description: `In order; the newest ${limits.shownAttemptsMax} of them` }),
})

const listDeliveries = webhookRoute({
  operationId: 'listDeliveries',
  path: '/api/v1/webhook/{id}/deliveries',
  summary: 'The deliveries of a subscription of the caller, with their attempts',
  description: 'Oldest first. Ended ones are kept for 30 days.',
  query: z.strictObject({
    state: optional(oneOf(deliveryStates).openapi({ description: 'Only those in this state' })),
    after: optional(id.openapi({ description: 'Deliveries after this one: a greater id', example: '4711' })),
    limit: optional(wholeNumber(1, 100).openapi({ description: 'Deliveries in one answer. Default: 100' })),
    newest: optional(
      oneOf(['true', 'false']).openapi({
        description: 'true: if there are more than limit, the last ones instead of the first. Default: false',
      }),
    ),
  }),
  answers: { 200: inJson('Deliveries, oldest first', z.array(WebhookDelivery)) },
  answer: ({ query, subscriptionId, inSchema }) => {
    const own = subscriptionId()
    const { state, after = '0', limit = 100, newest } = query
    const selected = { state, after, most: limit, newest: newest === 'true' }
    return inSchema(async (client, caller) => {
      await findOwnSubscription(client, caller, own)
      const deliveries = await listOwnDeliveries(client, own, selected)
      const { shownAttemptsMax, shownAnswerBytes } = limits
      const attempts = await listOwnAttempts(client, deliveries, shownAttemptsMax, shownAnswerBytes)
      const byDelivery = Map.groupBy(attempts, ({ deliveryId }) => deliveryId)
      return deliveries.map((delivery) => shownDelivery(delivery, byDelivery.get(delivery.id) ?? []))
    })
  },
})

function shownDelivery(
  { schemaId: _, ...delivery }: OwnDelivery,
  attempts: OwnAttempt[],
): z.output<typeof WebhookDelivery> {
  const made = attempts.map((attempt) => ({ number: attempt.number, ...shownAttempt(attempt) }))
  return { ...delivery, attempts: made }
}

const replayFields = `must be {"from":1042,"to":1061} with numbers of events, or {"failed":true}`

const number = z
  .union([z.string().regex(idPattern, 'must be the number of an event: 1 to 16 digits'), z.int()])
  .transform(Number)
  .refine((given) => given > 0, 'must be at least 1')
  .openapi({ type: 'integer', minimum: 1, example: 1042 })

const replayedDocument = z
  .union(
    [
      z
        .strictObject({ from: number, to: number })
        .openapi('ReplayedNumbers')
        // Negated, so that text that is not a number passes this check and is reported only as such.
        .refine(({ from, to }) => !(from > to), { path: ['to'], error: 'must be at least `from`' })
        .refine(({ from, to }) => !(to - from >= limits.replayedEventsMax), {
          path: ['to'],
          error: `must be less than ${limits.replayedEventsMax} after \`from\`: replay the rest in further requests`,
        }),
      z.strictObject({ failed: z.literal(true) }).openapi('ReplayedFailures'),
    ],
    { error: replayFields },
  )
  .openapi('Replay')

const replayDeliveries = webhookRoute({
  method: 'post',
  operationId: 'replayDeliveries',
  path: '/api/v1/webhook/{id}/replay',
  summary: 'Sends deliveries of a subscription of the caller again',
  description:
    'Sends events with these numbers, which were sent before, in new deliveries: with a new webhook-id, and with their ' +
    'former numbers and webhookIds. Or sends all failed deliveries. A subscription without an address: 409 ERR-WEBHOOK-PULL-ONLY; ' +
    `a disabled one: 409 ERR-WEBHOOK-DISABLED. While ${limits.pendingReplaysMax} replayed deliveries wait: 429.`,
  body: { schema: replayedDocument, mediaTypes: ['application/json'] },
  answers: {
    202: inJson('How many deliveries will be sent', named('Replayed', { deliveries: z.number().int() })),
  },
  answer: ({ body, subscriptionId, inSchema }) => {
    const own = subscriptionId()
    const replayed = checkBody(replayedDocument, body)
    return inSchema(async (client, caller) => ({
      deliveries: await replayOwn(client, caller, own, replayed),
    }))
  },
})

const Ping = Attempt.extend({
  fault: z.enum(noResponseFaults).openapi('PingFault').nullable().openapi({
    description: 'Why there was no response, in a word. Null: there was one',
  }),
  receiverDate: z.number().int().nullable().openapi({
    description: "The receiver's clock, epoch milliseconds: its header date. Null: it sent none",
  }),
  disabled: named('WebhookDisabled', { since: z.number().int(), reason: z.string() }).nullable().openapi({
    description: 'Since when, epoch milliseconds, and why no delivery is sent. Null: deliveries are sent',
  }),
}).openapi('WebhookPing')

const pingSubscription = webhookRoute({
  method: 'post',
  operationId: 'pingSubscription',
  path: '/api/v1/webhook/{id}/ping',
  summary: 'Sends one event ping to the address of a subscription at once, and returns the outcome',
  description:
    'A disabled subscription gets it, too; the answer has the reason why it is disabled. A ping is not repeated and has ' +
    'no number. More than one a second for a subscription: 429. A subscription without an address: 409 ERR-WEBHOOK-PULL-ONLY.',
  answers: { 200: inJson('The attempt, whatever the receiver answered', Ping) },
  answer: async ({ c, services, principal, subscriptionId }) => {
    const { trace } = c.get('telemetry')
    return shownPing(await ping({ ...services, trace }, principal, subscriptionId()))
  },
})

function shownPing({ fault, date, disabled, ...attempt }: Pinged): z.output<typeof Ping> {
  const receiverDate = date === null ? Number.NaN : Date.parse(date)
  return {
    ...shownAttempt(attempt),
    fault,
    receiverDate: Number.isNaN(receiverDate) ? null : receiverDate,
    disabled,
  }
}

export const deliveryRoutes: readonly Route[] = [listDeliveries, replayDeliveries, pingSubscription]
