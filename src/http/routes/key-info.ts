import { z } from '@hono/zod-openapi'
import { endOfToken, tokenGroups } from '../../auth/callers.sql.ts'
import { refusalOf } from '../../auth/principal.ts'
import { named } from '../../formats/items/values.ts'
import { oneOf, optional } from '../query.ts'
import { inJson, type Route, tokenRoute } from '../route.ts'

const OpenedRoute = named('OpenedRoute', {
  path: z.string().openapi({ example: '/api/v1/mad/movements' }),
  method: z.enum(['get', 'post', 'put', 'delete']).openapi('RouteMethod'),
})

const TokenDetails = z.object({
  target: named('TokenTarget', {
    type: z.enum(['api', 'firm']).openapi('TokenLevel'),
    schemaId: z.number(),
    thirdPartyId: z.number(),
    societyId: z.number().openapi({ description: 'The folder of a company token, the firm of a firm token' }),
  }),
  version: named('TokenVersion', { current: z.number(), latest: z.number(), beta: z.boolean() }),
  canBeActivated: z.boolean(),
  isActivated: z.boolean(),
  groups: z
    .array(z.enum(tokenGroups).openapi('TokenGroup'))
    .openapi({ description: 'The groups of routes that the token opens' }),
  expiresAt: z.iso.datetime().nullable().openapi({ description: 'When the token ends; null: it has no end' }),
  routes: z.array(OpenedRoute),
})

/** The routes that a token may call and, with `mode=extended`, the token itself. @param routes the route table */
export function keyInfo(routes: () => readonly Route[]): Route {
  return tokenRoute({
    operationId: 'getTokenInformation',
    path: '/api/v1/key/info',
    groups: [],
    summary: 'The routes open to the token, and with mode=extended the token itself',
    query: z.strictObject({ mode: optional(oneOf(['extended'])) }),
    answers: {
      200: inJson(
        'An array of routes, or with mode=extended one object',
        z.union([z.array(OpenedRoute), TokenDetails]).openapi('TokenInformation'),
      ),
    },
    answer: async ({ c, services, principal, query }) => {
      // The answer's list of methods has no PATCH (docs/spec/interface.md#token-information).
      const opened = routes()
        .filter((route) => route.scope !== 'open' && refusalOf(principal, route) === undefined)
        .flatMap(({ path, method }) => (method === 'patch' ? [] : [{ path, method }]))
      if (query.mode === undefined) return c.json(opened)
      const details: z.infer<typeof TokenDetails> = {
        target: {
          type: principal.level,
          schemaId: Number(principal.schemaId),
          thirdPartyId: Number(principal.thirdPartyId),
          societyId: Number(principal.folderId ?? principal.firmId),
        },
        version: { current: 1, latest: 1, beta: false },
        // Always true: a disconnected caller is refused before this, and this request uses the token.
        canBeActivated: true,
        isActivated: true,
        groups: [...(principal.groups ?? tokenGroups)],
        expiresAt: await endOfToken(services.database, principal),
        routes: opened,
      }
      return c.json(details)
    },
  })
}
