/**
 * A route is declared once, with the schemas of its parameters and answers. The declaration yields the check of the
 * request, the levels and groups it is open to, its line in key/info, the `Allow` header of a 405 and its part of the OpenAPI
 * document.
 *
 *   openRoute    needs no caller (health, documentation)
 *   tokenRoute   needs a caller, concerns no folder
 *   folderRoute  concerns one folder; runs in one of its request slots (setting RATE_LIMIT_CONCURRENT)
 */
import type { HttpBindings } from '@hono/node-server'
import { type RouteConfig, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { AnswerFacts } from '../audit/audit-trail.ts'
import type { RateWindow } from '../auth/callers.sql.ts'
import type { Principal, RouteAccess } from '../auth/principal.ts'
import type { RequestTelemetry } from '../telemetry/telemetry.ts'
import type { RequestSlot } from './request-slot.ts'
import type { Services } from './services.ts'

/** `c.env.outgoing` is Node's response: it sends trailers, and emits `close` when the answer ends in any way. */
export interface Edge {
  Bindings: HttpBindings
  Variables: {
    requestId: string
    telemetry: RequestTelemetry
    /** Code of the error answer. */
    errorCode: string | undefined
    /** Items and bytes (before compression) of a streamed export; set once all of it is sent. */
    sent: { rows: number; bytes: number } | undefined
    principal: Principal | undefined
    /** The rate window of the request's token. */
    rate: RateWindow | undefined
    folderId: string | undefined
    /** What the audit will contain of the request; undefined if the request gets no row. */
    audited: AnswerFacts | undefined
    /** Whether header and query name different folders; reported together with the other problems of the query. */
    folderNamesDisagree: boolean | undefined
  }
}

interface OpenCall<Query> {
  /**
   * Answer with `c.json` or `c.body(stream, 200, headers)`: a bare `new Response` loses the headers set before (request
   * id, rate limit).
   */
  c: Context<Edge>
  services: Services
  /** The query, checked and converted by the schema of the route. */
  query: Query
  requestId: string
}

export interface TokenCall<Query> extends OpenCall<Query> {
  principal: Principal
  /** The JSON of the body, unchecked; undefined if the route has none. */
  body: unknown
}

export interface FolderCall<Query> extends TokenCall<Query> {
  /** Id of the request's folder, in decimal digits. The caller may read this folder. */
  folderId: string
  /** The slot of the request: held already, unless the request waits. */
  slot: RequestSlot
}

type Answer<Call> = (call: Call) => Response | Promise<Response>
type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

interface Declaration<Query extends z.ZodObject, Call> {
  method: Method
  /** A verb and a noun, unique: client generators name their methods by it. */
  operationId: string
  /** The path with its parameters: `/api/v1/webhook/{id}`. */
  path: `/${string}`
  /** One line for the documentation. */
  summary: string
  description?: string
  /**
   * A strict object: an unknown parameter is an error, so that a misspelt filter does not export everything. A request
   * whose parameter `wait` is above 0 holds no slot until `answer` takes one, in turn. Its caller is checked again when
   * `answer` returns, which fixes the state that the answer shows.
   */
  query: Query
  /**
   * The path parameters, for the documentation only. `answer` reads them from `c.req`, because a malformed id is a 404
   * and not a validation error.
   */
  params?: z.ZodObject
  /** The JSON body. */
  body?: {
    /** The schema for the documentation; `answer` checks the body (`checkBody`). */
    schema: z.ZodType
    /** Schemas of the media types that do not take `schema`, by media type. */
    schemaOf?: Record<string, z.ZodType>
    /** An example for the documentation, where the schema alone would yield a body that makes no sense. */
    example?: unknown
    /** The accepted media types, without parameters, in lower case. */
    mediaTypes: readonly [string, ...string[]]
  }
  /** Request headers for the documentation, by lower-case name, in addition to those of all routes. */
  headers?: z.ZodObject
  /** Successful answers by status. The same errors are added to every route. */
  answers: RouteConfig['responses']
  /** The query as the audit keeps it; declared where the query may name content of the books. */
  recorded?(query: z.output<Query>): object
  /**
   * How many answers of one token may run at once, counted over all routes with this name. A request is counted before
   * its body is parsed.
   */
  atOnce?: { name: string; most: number }
  /** Marks a GET that starts something. HEAD, which must have no effect, is refused (405). */
  starts?: true
  /**
   * Says that the route, or one parameter of it, is deprecated: since which day, and on which day it will be removed
   * (docs/versions.md#notice). Days are `YYYY-MM-DD`, and begin at midnight UTC.
   */
  deprecated?: { since: string; sunset?: string; parameter?: string }
  /** Answers the request. Throws AppError for errors of the caller and of the environment. */
  answer: Answer<Call>
}

/** An answer with a body of JSON, for the documentation. */
export function inJson(description: string, schema: z.ZodType) {
  return { description, content: { 'application/json': { schema } } }
}

export type Route = Omit<Declaration<z.ZodObject, never>, 'answer'> &
  RouteAccess &
  (
    | { scope: 'open'; answer: Answer<OpenCall<never>> }
    | { scope: 'token'; answer: Answer<TokenCall<never>> }
    | { scope: 'folder'; answer: Answer<FolderCall<never>> }
  )

const noQuery = z.strictObject({})
export type NoQuery = typeof noQuery

/** What a route itself declares. Without `method` and `query` it is a GET without parameters. */
export type Declared<Query extends z.ZodObject, Call> = Omit<Declaration<Query, Call>, 'method' | 'query'> &
  Partial<Pick<Declaration<Query, Call>, 'method' | 'query'>> &
  Omit<RouteAccess, 'levels'>

const usual = { method: 'get', query: noQuery, levels: ['api', 'firm'] } as const

export function openRoute<Query extends z.ZodObject = NoQuery>(
  declaration: Omit<Declared<Query, OpenCall<z.output<Query>>>, 'groups'>,
): Route {
  return { ...usual, ...declaration, scope: 'open', levels: [], groups: [] }
}

export function tokenRoute<Query extends z.ZodObject = NoQuery>(
  declaration: Declared<Query, TokenCall<z.output<Query>>>,
): Route {
  return { ...usual, ...declaration, scope: 'token' }
}

export function folderRoute<Query extends z.ZodObject = NoQuery>(
  declaration: Declared<Query, FolderCall<z.output<Query>>>,
): Route {
  return { ...usual, ...declaration, scope: 'folder' }
}
