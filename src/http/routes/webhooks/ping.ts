import { z } from '@hono/zod-openapi'
import { named } from '../../../formats/items/values.ts'
import { noResponseFaults } from '../../../webhooks/dispatch/fault.ts'
import { type Pinged, ping } from '../../../webhooks/owner/ping.ts'
import { inJson } from '../../route.ts'
import { Attempt, shownAttempt } from './attempts.ts'
import { webhookRoute } from './own-subscription.ts'

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

export const pingRoute = webhookRoute({
  method: 'post',
  operationId: 'pingSubscription',
  path: '/api/v1/webhook/{id}/ping',
  summary: 'Sends one event ping to the address of a subscription, at once, and tells how that went',
  description:
    'Also to a disabled subscription; the answer tells that it is. It is not repeated and has no number. At most one a second for a subscription: 429. A ' +
    'subscription without an address: 409 ERR-WEBHOOK-PULL-ONLY.',
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
