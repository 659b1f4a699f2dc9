/** The events of a subscription, read by number (docs/spec/webhooks.md#reading-events). */
import { z } from '@hono/zod-openapi'
import { named } from '../../../formats/items/values.ts'
import { type EventPage, readEvents } from '../../../webhooks/sequence/events.ts'
import { optional, wait, wholeNumber } from '../../query.ts'
import { whenOver } from '../../request-slot.ts'
import { inJson } from '../../route.ts'
import { Notification } from '../../schemas/notification-schema.ts'
import { uncached, type WebhookCall, webhookRoute } from './own-subscription.ts'

const query = z.strictObject({
  after: optional(
    wholeNumber(0, Number.MAX_SAFE_INTEGER).openapi({
      description: 'Events with greater numbers. Default: 0',
      example: 1041,
    }),
  ),
  limit: optional(wholeNumber(1, 1000).openapi({ description: 'Events in one answer. Default: 100' })),
  wait,
})

const NumberedNotification = named('NumberedNotification', {
  sequence: z.string().openapi({ description: 'The number, decimal digits', example: '1042' }),
  event: Notification,
})

export const subscriptionEvents = webhookRoute({
  operationId: 'listEvents',
  path: '/api/v1/webhook/{id}/events',
  summary: 'The events of a subscription of the caller, by number',
  description:
    'Works for any subscription, also if it fails, is disabled or has no address. Numbers are consecutive: a gap is a ' +
    'loss, except for events that were erased with their folder (Webhook-Erased). Where webhook-epoch changes they jump: events may have been lost with a server, so ask each ledger for what ' +
    'changed (since). Events are kept for 30 days; after that the answer is 410 ERR-EVENTS-EXPIRED, and details.oldest is the first ' +
    'number still kept. With wait, the request is held until there is an event after the number.',
  query,
  answers: {
    200: {
      ...inJson(
        'Ascending, of one epoch, without gaps except those of Webhook-Erased. There may be fewer than limit although more are left: compare X-Latest-Sequence',
        z.array(NumberedNotification),
      ),
      headers: {
        'X-Latest-Sequence': {
          description:
            'The last number of the subscription; 0 without any. The given one, if all later events were erased',
          schema: { type: 'integer' },
        },
        'Webhook-Epoch': {
          description:
            'The epoch in which the events of the answer got their numbers; without events, the present one',
          schema: { type: 'integer' },
        },
        'Webhook-Erased': {
          description:
            'The numbers after the given one that are left out, because their events were erased with a folder: `1043, 1050-1061`. ' +
            'Absent without any',
          schema: { type: 'string' },
        },
      },
    },
  },
  answer: async (call) => {
    const { json, latest, epoch, erased } = await readOrWait(call)
    const ranges = erased.map(({ first, last }) => (first === last ? first : `${first}-${last}`))
    return call.c.body(json, 200, {
      ...uncached,
      'Content-Type': 'application/json',
      'X-Latest-Sequence': String(latest),
      'Webhook-Epoch': String(epoch),
      ...(ranges.length === 0 ? {} : { 'Webhook-Erased': ranges.join(', ') }),
    })
  },
})

async function readOrWait(call: WebhookCall<z.output<typeof query>>): Promise<EventPage> {
  const { c, services, principal, query, subscriptionId } = call
  const { after = 0, limit = 100, wait: seconds = 0 } = query
  const id = subscriptionId()
  const { database, notifications, waitingReads } = services
  const read = () => readEvents(database, principal, id, after, limit)
  if (seconds === 0) return read()
  const until = performance.now() + seconds * 1000
  using watch = await notifications.watch('grandlivre_events', principal.schemaId)
  whenOver(c.env.outgoing, () => watch.stop())
  let page = await read()
  while (page.events === 0 && (await watch.next(until - performance.now())))
    // One event wakes all requests that wait for its schema: they read in turn, a few at a time.
    page = await waitingReads.run(principal.thirdPartyId, read)
  return page
}
