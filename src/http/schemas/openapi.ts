/** The OpenAPI document, generated from the route table. */
import { OpenApiGeneratorV31 } from '@asteasolutions/zod-to-openapi'
import { createRoute, extendZodWithOpenApi, OpenAPIHono, type RouteConfig, z } from '@hono/zod-openapi'
import { ErrorBody } from '../errors.ts'
import { idSchema } from '../query.ts'
import { openRoute, type Route } from '../route.ts'
import { errorAnswerHeaders, rateHeaders, requestIdHeader } from './answer-headers.ts'
import { sentToSubscribers } from './notification-schema.ts'

extendZodWithOpenApi(z)

type Document = ReturnType<OpenAPIHono['getOpenAPI31Document']>

/**
 * The groups of routes, in the order in which a newcomer needs them. A route belongs to the first group whose pattern
 * fits its path.
 */
const groups = [
  {
    name: 'Token and folders',
    paths: /^\/api\/v1\/(?:key|society)/,
    description: 'What a token may call, and the folders that it opens.',
  },
  {
    name: 'Ledger',
    paths: /^\/api\/v1\/mad\/(?:movements|entries|entry|balance)/,
    description:
      'Movements, entries and balances of one fiscal year or period, streamed from one state of the ledger. `since` ' +
      'answers what changed, and the digests of blocks prove that a copy equals the ledger.',
  },
  {
    name: 'Ledgers',
    paths: /^\/api\/v1\/mad\/ledgers/,
    description: 'Many ledgers at once: which changed, what changed in them, and digests of their rows.',
  },
  {
    name: 'Full exports',
    paths: /^\/api\/v1\/mad\/all/,
    description:
      'A file of the folder. It is written after the request has ended; its status has the address.',
  },
  {
    name: 'Collections',
    paths: /^\/api\/v1\/mad\//,
    description: 'What movements refer to: accounts, journals, fiscal years and more, one route for each.',
  },
  {
    name: 'Webhooks',
    paths: /^\/api\/v1\/webhook/,
    description:
      'Subscriptions to events, with their deliveries. Events can also be read by number, without an address.',
  },
  { name: 'Service', paths: /^\//, description: 'This document, and the probes. Open: they need no token.' },
] as const

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
  const { method, operationId, path, summary, query, params, answers, scope } = route
  const parameter = route.deprecated?.parameter
  const headers = scope === 'folder' ? societyId.extend(route.headers?.shape ?? {}) : route.headers
  const shared = { ...requestIdHeader, ...(scope === 'open' ? {} : rateHeaders) }
  const answered = Object.entries(answers).map(([status, answer]) => {
    const own = 'headers' in answer ? answer.headers : {}
    return [status, { ...answer, headers: { ...own, ...shared } }]
  })
  const failed = {
    description: 'An error. `error.code` says which',
    headers: { ...errorAnswerHeaders, ...shared },
    content: { 'application/json': { schema: ErrorBody } },
  }
  return createRoute({
    method,
    path,
    operationId,
    tags: [groups.find(({ paths }) => paths.test(path))!.name],
    summary,
    description: descriptionOf(route),
    ...(route.deprecated && !parameter ? { deprecated: true } : {}),
    request: {
      query: parameter ? query.safeExtend({ [parameter]: markDeprecated(query.shape[parameter]!) }) : query,
      ...(params ? { params } : {}),
      ...(headers ? { headers } : {}),
    },
    responses: {
      ...Object.fromEntries(answered),
      '4XX': failed,
      '5XX': failed,
    },
    ...(scope === 'open' ? { security: [] } : { security: [{ accessToken: [], partnerSecret: [] }] }),
  })
}

const markDeprecated = (schema: z.ZodType) => schema.openapi({ param: { deprecated: true } })

function descriptionOf({ description, scope, groups, deprecated }: Route): string {
  const open =
    groups.length === 0 ? 'Open to every token.' : `Needs a token of the group \`${groups.join('` and `')}\`.`
  const { since, sunset, parameter } = deprecated ?? {}
  const end = `Deprecated${parameter ? ` (${parameter})` : ''} since ${since}${sunset ? `, until ${sunset}` : ''}.`
  return [description, scope !== 'open' && open, deprecated && end].filter(Boolean).join(' ')
}

function bodyOf({ body }: Route): RouteConfig['request'] {
  if (!body) return {}
  const { schema, schemaOf = {}, example } = body
  const content = Object.fromEntries(
    body.mediaTypes.map((type) => {
      const own = schemaOf[type]
      return [type, own ? { schema: own } : { schema, ...(example === undefined ? {} : { example }) }]
    }),
  )
  const description = 'Read as JSON if Content-Type is absent'
  return { body: { required: true, description, content } }
}

/** The introduction of the document, in Markdown. */
const introduction = `Streams whole ledgers out of a firm's bookkeeping, and tells partners what changed in them.

**Credentials.** Each request carries an access token (\`Authorization: Bearer\`) and a partner secret
(\`X-Third-Party-Secret\`). The group *Service* needs neither.

**First request.** \`GET /api/v1/society\` lists the folders, \`GET /api/v1/mad/exercices\` their fiscal years, and
\`GET /api/v1/mad/movements\` answers the movements of the year in \`idExercice\`.

**Large answers** are streamed. One ends with the trailers \`X-Row-Count\` and \`X-Content-SHA256\`, which prove that it is
whole; one that fails is cut off. \`after\` with \`If-Match\` continues after the last movement that arrived.

**Versions.** Within version 1.0.0, members are added to answers and nothing is taken away without six months' notice: in this
document (\`deprecated\`), and in the headers \`Deprecation\` and \`Sunset\` of the answers that it concerns.

**Limits.** A token has a number of requests in a window, shown in the \`X-Rate-Limit\` headers. 429 and 503 say in
\`Retry-After\` when to send the request again.`

export function openApiDocument(routes: readonly Route[]): Document {
  const described = new OpenAPIHono()
  described.openAPIRegistry.registerComponent('securitySchemes', 'accessToken', {
    type: 'http',
    scheme: 'bearer',
    description:
      'The access token. A company token (`glv_api_...`) opens one folder. A firm token (`glv_firm_...`) opens those of its ' +
      'firm, and each request names one in the header society-id. A token may be issued for some groups of routes alone: ' +
      'each route says which it needs.',
  })
  described.openAPIRegistry.registerComponent('securitySchemes', 'partnerSecret', {
    type: 'apiKey',
    in: 'header',
    name: 'X-Third-Party-Secret',
    description: 'The partner secret (`glv_secret_...`) of the third party to which the token was issued.',
  })
  for (const route of routes) {
    const description = describeRoute(route)
    const request = { ...description.request, ...bodyOf(route) }
    described.openAPIRegistry.registerPath({ ...description, request })
  }
  for (const sent of sentToSubscribers) described.openAPIRegistry.registerWebhook(sent)
  const document = generatorOf(described.openAPIRegistry.definitions).generateDocument({
    openapi: '3.1.0',
    info: {
      title: 'Grandlivre',
      version: '1.0.0',
      description: introduction,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    // Relative, so that the document is the same at every address by which the service is reached.
    servers: [{ url: '/' }],
    tags: groups.map(({ name, description }) => ({ name, description })),
  })
  uniteArrays(document.components!.schemas as Record<string, NamedSchema>)
  return document
}

type NamedSchema = { type?: unknown; anyOf?: ({ $ref?: string } & object)[] }

/**
 * Turns each choice of an array and an object into one schema with the keywords of both. Generators for Java make classes
 * of a choice that do not compile. Generators for Go know no schema of two types; they take `x-go-type`.
 */
function uniteArrays(schemas: Record<string, NamedSchema>): void {
  const resolved = ({ $ref, ...own }: { $ref?: string }): NamedSchema =>
    $ref === undefined ? own : schemas[$ref.replace('#/components/schemas/', '')]!
  for (const [name, { anyOf = [], ...schema }] of Object.entries(schemas)) {
    const choices = anyOf.map(resolved)
    if (!choices.some(({ type }) => type === 'array')) continue
    const type = choices.map(({ type }) => type)
    schemas[name] = Object.assign({}, ...choices, { description: undefined }, schema, {
      type,
      'x-go-type': 'json.RawMessage',
    })
  }
}

/**
 * Corrects two descriptions that the library gets wrong. It says that a named schema that may be null is both the
 * schema and null; here it is either. It describes a literal as a list of one word, for which generators make classes
 * `Name1` to `Name14`; here a literal is a constant.
 */
function generatorOf(definitions: OpenAPIHono['openAPIRegistry']['definitions']): OpenApiGeneratorV31 {
  const generator = new OpenApiGeneratorV31(definitions)
  const inner = generator['generator'] as unknown as { generateSchemaWithRef(schema: z.ZodType): object }
  const described = inner.generateSchemaWithRef.bind(inner)
  inner.generateSchemaWithRef = (schema) => {
    if (schema instanceof z.ZodLiteral) return { ...described(schema), enum: undefined, const: schema.value }
    const given = schema instanceof z.ZodOptional ? schema.unwrap() : schema
    if (!(given instanceof z.ZodNullable)) return described(schema)
    const known = described(given.unwrap() as z.ZodType)
    return '$ref' in known ? { anyOf: [known, { type: 'null' }] } : described(schema)
  }
  return generator
}

/** @param document returns the document; called for each request, because the document includes this route */
export function openApiRoute(document: () => Document): Route {
  return openRoute({
    path: '/api/v1/openapi.json',
    operationId: 'getOpenApiDocument',
    summary: 'This document',
    description: 'What it says is the same for every caller.',
    answers: {
      200: {
        description: 'OpenAPI 3.1',
        content: { 'application/json': { schema: z.looseObject({}).openapi('OpenApiDocument') } },
      },
    },
    answer: ({ c }) => c.json(document()),
  })
}
