/** The operator's probes: whether the process is alive, and whether it can accept requests. Both need no caller. */
import { z } from '@hono/zod-openapi'
import { AppError } from '../../errors.ts'
import { inJson, openRoute } from '../route.ts'

export const healthz = openRoute({
  method: 'get',
  path: '/healthz',
  summary: 'The process is up',
  query: z.strictObject({}),
  answers: { 200: inJson('Up', z.object({ status: z.literal('up') })) },
  answer: ({ c }) => c.json({ status: 'up' }),
})

export const readyz = openRoute({
  method: 'get',
  path: '/readyz',
  summary: 'The process can accept requests',
  query: z.strictObject({}),
  answers: {
    200: inJson(
      'Ready; otherwise the answer is 503 and its error names what is missing',
      z.object({
        status: z.literal('ready'),
        degraded: z
          .array(z.string())
          .optional()
          .openapi({ description: 'What is missing, while something else takes its place' }),
      }),
    ),
  },
  answer: async ({ c, services }) => {
    const { missing, degraded } = await services.readiness.check()
    if (missing.length === 0) {
      const names = degraded.map(({ name }) => name)
      return c.json({ status: 'ready', ...(names.length === 0 ? {} : { degraded: names }) })
    }
    // The log gets the cause, the probe the names.
    throw new AppError('ERR-UNAVAILABLE', {
      message: `Not ready: ${missing.map(({ name }) => name).join(', ')}`,
      cause: missing[0]?.error,
    })
  },
})
