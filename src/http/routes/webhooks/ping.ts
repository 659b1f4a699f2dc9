import { z } from '@hono/zod-openapi'
import { ping } from '../../../webhooks/owner/ping.ts'
import { tokenRoute } from '../../route.ts'
import { Attempt, shownAttempt } from './attempts.ts'
import { readSubscriptionId, routeAccess, subscriptionId, uncached } from './own-subscription.ts'

export const pingRoute = tokenRoute({
  method: 'post',
  path: '/api/v1/webhook/{id}/ping',
  ...routeAccess,
  summary: 'Sends one event ping to the address of a subscription, at once, and tells how that went',
  description:
    'Also to a disabled subscription. It is not repeated and has no number. At most one a second for a subscription: 429. A ' +
    'subscription without an address: 409 ERR-WEBHOOK-PULL-ONLY.',
  query: z.strictObject({}),
  params: subscriptionId,
  answers: {
    200: {
      description: 'The attempt, whatever the receiver answered',
      content: { 'application/json': { schema: Attempt } },
    },
  },
  answer: async ({ c, services, principal }) => {
    const id = readSubscriptionId(c.req.param('id'))
    return c.json(shownAttempt(await ping(services, principal, id)), 200, uncached)
  },
})
