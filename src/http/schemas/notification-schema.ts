/** What subscribers receive, for the OpenAPI document (docs/spec/webhooks.md#notification). */
import { type RouteConfig, z } from '@hono/zod-openapi'
import { type EventKind, eventKinds, kinds, type Operation } from '../../events/kinds.ts'
import { named } from '../../formats/items/values.ts'

const scope = named('EventScope', {
  schemaId: z.number().int(),
  firmId: z.number().int().optional(),
  firmSIRET: z.string().optional(),
  accountingFolderId: z.number().int().optional(),
  accountingFolderRef: z.string().optional(),
  accountingFolderSIRET: z.string().optional(),
  persPhysiqueId: z.number().int().optional().openapi({ description: 'The person who caused it' }),
})

const webhookId = z
  .uuid()
  .openapi({ description: 'The same each time this event is sent to this subscription' })
const createdAt = z.number().int().openapi({ description: 'Epoch milliseconds' })

/** @param operations at least one; all have these data */
function event(name: string, operations: string[], data: z.ZodType) {
  const operation =
    operations.length === 1
      ? z.literal(operations[0]!)
      : z.enum(operations).openapi(`${capitalized(name)}Operation`)
  return z.object({ name: z.literal(name), operation, scope, data, webhookId, createdAt })
}

/** The events of a kind: one schema for all, or one per operation if their data differ. */
function eventsOf(kind: EventKind): z.ZodType[] {
  const operations = Object.entries(kinds[kind]) as [Operation, z.ZodType][]
  const [[, data]] = operations as [[Operation, z.ZodType]]
  if (operations.every(([, other]) => other === data)) {
    const names = operations.map(([operation]) => operation)
    return [event(kind, names, data).openapi(`${capitalized(kind)}Event`)]
  }
  return operations.map(([operation, own]) =>
    event(kind, [operation], own).openapi(`${capitalized(kind)}${capitalized(operation.toLowerCase())}Event`),
  )
}

const capitalized = (word: string) => word[0]!.toUpperCase() + word.slice(1)

export const Notification = z.union(eventKinds.flatMap(eventsOf)).openapi('Notification')
/** The schema has a title instead of a name: generators for Go leave out named schemas that no route uses. */
const PingEvent = event('ping', ['VOID'], z.strictObject({})).openapi({ title: 'PingEvent' })

const described = (description: string) => z.string().openapi({ description })

const signedHeaders = {
  date: described('Time of sending, epoch milliseconds'),
  signature: described(
    'HMAC-SHA256, hexadecimal, of the body followed by the value of date; keyed with the partner secret',
  ),
  'webhook-id': described('Id of the delivery, the same at each attempt'),
  'webhook-timestamp': described('Time of sending, epoch seconds'),
  'webhook-signature': described(
    'Standard Webhooks: v1, and the base64 of the HMAC-SHA256 of `id.timestamp.body`, keyed with the signing secret of the ' +
      'subscription. Several, separated by blanks, while it is being rotated',
  ),
  'content-digest': described('RFC 9530: sha-256 of the body'),
}

function webhook(
  path: string,
  operationId: string,
  summary: string,
  headers: Record<string, z.ZodType>,
  body: z.ZodType,
  responses: RouteConfig['responses'],
): RouteConfig {
  const content = { 'application/json': { schema: body } }
  const request = { headers: z.object(headers), body: { required: true, content } }
  return { method: 'post', path, operationId, summary, security: [], request, responses }
}

/** Everything that is sent to the postUrl of a subscription. */
export const sentToSubscribers: readonly RouteConfig[] = [
  webhook(
    'notification',
    'receiveEvents',
    'Events, sent to the postUrl of a subscription',
    {
      ...signedHeaders,
      'webhook-sequence': z.string().optional().openapi({
        description:
          'Numbers of the first and the last event. A gap within an epoch is a loss, unless those events were erased with their folder. Absent in deliveries from before events had numbers',
        example: '1042-1061',
      }),
      'webhook-epoch': z.string().optional().openapi({
        description:
          'The epoch of these numbers, which jump where it changes: events may have been lost with a server. Absent with webhook-sequence',
        example: '583920114',
      }),
    },
    z.array(Notification).min(1).max(100),
    {
      '2XX': {
        description:
          'Accepted. After any other status, or none within ten seconds, the delivery is retried for three days',
      },
      410: { description: 'Gone: the subscription is disabled' },
    },
  ),
  webhook(
    'ping',
    'receivePing',
    'One event without a number, sent when its owner asks for it',
    signedHeaders,
    z.array(PingEvent).length(1),
    { '2XX': { description: 'Shown to the owner, like any other answer. A ping is not repeated' } },
  ),
]
