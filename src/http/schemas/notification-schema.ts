/** What subscribers receive, as the OpenAPI document shows it (interface, sections 2.7 and 4.7). */
import { type RouteConfig, z } from '@hono/zod-openapi'
import { eventKinds } from '../../events/kinds.ts'

const Notification = z
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
    data: z.looseObject({}).openapi({ description: 'What is needed to fetch the thing concerned' }),
    webhookId: z.uuid().openapi({ description: 'The same whenever this event is sent to this subscription' }),
    createdAt: z.number().openapi({ description: 'Epoch milliseconds' }),
  })
  .openapi('Notification')

export const notification: RouteConfig = {
  method: 'post',
  path: 'notification',
  summary: 'Events, as they are sent to the postUrl of a subscription',
  security: [],
  request: {
    headers: z.object({
      date: z.string().openapi({ description: 'The moment of sending, epoch milliseconds' }),
      signature: z.string().openapi({
        description:
          'HMAC-SHA256, hexadecimal, of the body followed by the value of date; keyed with the partner secret',
      }),
    }),
    body: { required: true, content: { 'application/json': { schema: z.array(Notification).max(100) } } },
  },
  responses: {
    '2XX': {
      description: 'Taken. Anything else, or nothing within ten seconds: sent again later, for three days',
    },
    410: { description: 'Gone: the subscription is disabled' },
  },
}
