/** How the documentation and answers show one attempt at a delivery (docs/spec/webhooks.md#attempts). */
import { z } from '@hono/zod-openapi'
import { limits } from '../../../config.ts'
import type { OwnAttempt } from '../../../webhooks/owner/deliveries.sql.ts'

export const Attempt = z
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

export function shownAttempt({
  at,
  status,
  latencyMs,
  error,
  answer,
}: Pick<OwnAttempt, 'at' | 'status' | 'latencyMs' | 'error' | 'answer'>): z.output<typeof Attempt> {
  const text = answer && new TextDecoder().decode(answer.subarray(0, limits.shownAnswerBytes))
  return { at, status, milliseconds: latencyMs, error, answer: text }
}
