/** The operator's probes: whether the process is alive, and whether it can accept requests. Both need no caller. */
import { z } from '@hono/zod-openapi'
import { AppError } from '../../errors.ts'
import { named } from '../../formats/items/values.ts'
import { inJson, openRoute } from '../route.ts'

export const healthz = openRoute({
  operationId: 'getHealth',
  path: '/healthz',
  summary: 'The process is up',
  description: 'Also while it starts.',
  answers: { 200: inJson('Up', named('Health', { status: z.literal('up') })) },
  answer: ({ c }) => c.json({ status: 'up' }),
})

export const readyz = openRoute({
  operationId: 'getReadiness',
  path: '/readyz',
  summary: 'The process can accept requests',
  description: 'Otherwise the answer is 503, and its message names what is missing.',
  answers: {
    200: inJson(
      'Ready; otherwise the answer is 503 and its error names what is missing',
      named('Readiness', {
        status: z.literal('ready'),
        degraded: z
          .array(z.string())
          .optional()
          .openapi({ description: 'What is missing, but replaced by something else' }),
        epoch: z
          .object({ number: z.int(), began: z.iso.datetime(), ageSeconds: z.number() })
          .openapi('Epoch')
          .optional()
          .openapi({
            description:
              'A new one begins when another server takes over. Cursors of former ones are refused',
          }),
      }),
    ),
  },
  answer: async ({ c, services }) => {
    if (services.readiness.leaving) throw services.readiness.leaving
    const [{ missing, degraded }, epoch] = await Promise.all([
      services.readiness.check(),
      services.epoch.latest(),
    ])
    if (missing.length === 0) {
      const names = degraded.map(({ name }) => name)
      const degradation = names.length === 0 ? {} : { degraded: names }
      return c.json({ status: 'ready', ...degradation, ...(epoch ? { epoch } : {}) })
    }
    // The log gets the cause; the probe gets only the names.
    throw new AppError('ERR-UNAVAILABLE', {
      message: `Not ready: ${missing.map(({ name }) => name).join(', ')}`,
      cause: missing[0]?.error,
    })
  },
})
