/** The OpenAPI document, generated from the route table. */
import { createRoute, extendZodWithOpenApi, OpenAPIHono, type RouteConfig, z } from '@hono/zod-openapi'
import { errorCodes } from '../../errors.ts'
import { ErrorBody } from '../errors.ts'
import { idSchema } from '../query.ts'
import { openRoute, type Route } from '../route.ts'
import { errorAnswerHeaders, rateHeaders, requestIdHeader } from './answer-headers.ts'
import { sentToSubscribers } from './notification-schema.ts'

extendZodWithOpenApi(z)

type Document = ReturnType<OpenAPIHono['getOpenAPI31Document']>

const societyId = z.object({
  'society-id': z
    .string()
    .optional()
    .openapi({
      ...idSchema,
      description: 'The folder. Required with a firm token unless a parameter names it',
      example: '1000',
    }),
})

/**
 * Converts a route to the library's declaration, with the headers and errors that all routes share. It omits the body,
 * because the library would read it before its size and type are checked.
 */
export function describeRoute(route: Route): RouteConfig & { path: string } {
  const { method, path, summary, description, query, params, answers, scope } = route
  const headers = scope === 'folder' ? societyId.extend(route.headers?.shape ?? {}) : route.headers
  const shared = { ...requestIdHeader, ...(scope === 'open' ? {} : rateHeaders) }
  const answered = Object.entries(answers).map(([status, answer]) => {
    const own = 'headers' in answer ? answer.headers : {}
    return [status, { ...answer, headers: { ...own, ...shared } }]
  })
  return createRoute({
    method,
    path,
    summary,
    ...(description === undefined ? {} : { description }),
    request: { query, ...(params ? { params } : {}), ...(headers ? { headers } : {}) },
    responses: {
      ...Object.fromEntries(answered),
      default: {
        description: `An error. Codes: ${Object.keys(errorCodes).join(', ')}`,
        headers: { ...errorAnswerHeaders, ...shared },
        content: { 'application/json': { schema: ErrorBody } },
      },
    },
    ...(scope === 'open' ? { security: [] } : { security: [{ accessToken: [], partnerSecret: [] }] }),
  })
}

function bodyOf({ body }: Route): RouteConfig['request'] {
  if (!body) return {}
  const content = Object.fromEntries(body.mediaTypes.map((type) => [type, { schema: body.schema }]))
  const description = 'Read as JSON if Content-Type is absent'
  return { body: { required: true, description, content } }
}

export function openApiDocument(routes: readonly Route[]): Document {
  const described = new OpenAPIHono()
  described.openAPIRegistry.registerComponent('securitySchemes', 'accessToken', {
    type: 'http',
    scheme: 'bearer',
  })
  described.openAPIRegistry.registerComponent('securitySchemes', 'partnerSecret', {
    type: 'apiKey',
    in: 'header',
    name: 'X-Third-Party-Secret',
  })
  for (const route of routes) {
    const description = describeRoute(route)
    const request = { ...description.request, ...bodyOf(route) }
    described.openAPIRegistry.registerPath({ ...description, request })
  }
  for (const sent of sentToSubscribers) described.openAPIRegistry.registerWebhook(sent)
  return described.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'Grandlivre',
      version: '1.0.0',
      description: 'Exports of accounting folders. Routes need both headers unless they are marked as open.',
    },
  })
}

/** @param document called for each request, because the document includes this route */
export function openApiRoute(document: () => Document): Route {
  return openRoute({
    method: 'get',
    path: '/api/v1/openapi.json',
    summary: 'This document',
    query: z.strictObject({}),
    answers: {
      200: { description: 'OpenAPI 3.1', content: { 'application/json': { schema: z.looseObject({}) } } },
    },
    answer: ({ c }) => c.json(document()),
  })
}
