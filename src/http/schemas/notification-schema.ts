/** What subscribers receive, for the OpenAPI document (docs/spec/webhooks.md#notification). */
import { type RouteConfig, z } from '@hono/zod-openapi'
import { eventKinds } from '../../events/kinds.ts'

export const Notification = z
  .object({
    name: z.enum(eventKinds),
    operation: z.enum(['CREATE', 'UPDATE', 'DELETE', 'VOID']),
    scope: z.object({
      schemaId: z.number(),
      firmId: z.number().optional(),
      firmSIRET: z.string().optional(),
      accountingFolderId: z.number().optional(),
      accountingFolderRef: z.string().optional(),
      accountingFolderSIRET: z.string().optional(),
      persPhysiqueId: z.number().optional(),
    }),
    data: z.looseObject({}).openapi({ description: 'The ids needed to fetch the object' }),
    webhookId: z
      .uuid()
      .openapi({ description: 'The same each time this event is sent to this subscription' }),
    createdAt: z.number().openapi({ description: 'Epoch milliseconds' }),
  })
  .openapi('Notification')

export const notification: RouteConfig = {
  method: 'post',
  path: 'notification',
  summary: 'Events, sent to the postUrl of a subscription',
  security: [],
  request: {
    headers: z.object({
      date: z.string().openapi({ description: 'Time of sending, epoch milliseconds' }),
      signature: z.string().openapi({
        description:
          'HMAC-SHA256, hexadecimal, of the body followed by the value of date; keyed with the partner secret',
      }),
      'webhook-sequence': z.string().optional().openapi({
        description:
          'First and last number of these events in the subscription. Absent in deliveries from before events had numbers',
        example: '1042-1061',
      }),
    }),
    body: { required: true, content: { 'application/json': { schema: z.array(Notification).max(100) } } },
  },
  responses: {
    '2XX': {
      description:
        'Accepted. After any other status, or none within ten seconds, the delivery is retried for three days',
    },
    410: { description: 'Gone: the subscription is disabled' },
  },
}
