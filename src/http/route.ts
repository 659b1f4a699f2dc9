/**
 * How a route is declared: once, with what it takes and answers as schemas. From the declaration come the check of
 * the request, the levels it is open to, its line in key/info, the `Allow` of a 405 and its part of the OpenAPI
 * document.
 *
 *   openRoute    needs no caller (health, documentation)
 *   tokenRoute   needs a caller, concerns no folder
 *   folderRoute  concerns one folder; at most so many run at once for it (setting RATE_LIMIT_CONCURRENT)
 */
import type { HttpBindings } from '@hono/node-server'
import type { RouteConfig, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { Principal, RouteAccess } from '../auth/principal.ts'
import type { Services } from './services.ts'

/** `c.env.outgoing` is Node's response: trailers, and the `close` that says that the client left or has it all. */
export interface Edge {
  Bindings: HttpBindings
  Variables: {
    requestId: string
    /** Code of the error that was answered. */
    errorCode: string | undefined
    principal: Principal | undefined
    folderId: string | undefined
    /** Header and query name two folders: a mistake of the query, told with its others. */
    folderNamesDisagree: boolean | undefined
  }
}

export interface OpenCall<Query> {
  /**
   * Answer with `c.json`, or with `c.body(stream, 200, headers)`: a bare `new Response` loses the headers that were
   * prepared (request id, rate limit).
   */
  c: Context<Edge>
  services: Services
  /** Checked and converted by the schema of the route. */
  query: Query
  requestId: string
}

export interface TokenCall<Query> extends OpenCall<Query> {
  principal: Principal
  /** The JSON of the body, unchecked; undefined where the route takes none. */
  body: unknown
}

export interface FolderCall<Query> extends TokenCall<Query> {
  /** The folder of the request, which the caller may read. Decimal digits. */
  folderId: string
}

type Answer<Call> = (call: Call) => Response | Promise<Response>
export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

interface Declaration<Query extends z.ZodObject, Call> {
  method: Method
  /** `/api/v1/webhook/{id}` */
  path: `/${string}`
  /** One line for the documentation. */
  summary: string
  description?: string
  /** A strict object: an unknown parameter is refused, so that a misspelt filter does not export everything. */
  query: Query
  /**
   * What the braces in the path stand for, for the documentation: the answer reads them from `c.req`, as what is no id
   * is nothing that is there, and not a mistake of the request.
   */
  params?: z.ZodObject
  /** A body of JSON. */
  body?: {
    /** For the documentation; the answer checks it (`checkBody`). */
    schema: z.ZodType
    /** Without parameters, in lower case. */
    mediaTypes: readonly [string, ...string[]]
  }
  /** Request headers for the documentation, by lower-case name, beside those of all routes. */
  headers?: z.ZodObject
  /** Answers by status; errors are added to all routes alike. */
  answers: RouteConfig['responses']
  /** A GET that starts something. Who only looks must not: HEAD is refused (405). */
  starts?: true
  /** What is wrong with the world is thrown as AppError. */
  answer: Answer<Call>
}

export type Route = Omit<Declaration<z.ZodObject, never>, 'answer'> &
  RouteAccess &
  (
    | { scope: 'open'; answer: Answer<OpenCall<never>> }
    | { scope: 'token'; answer: Answer<TokenCall<never>> }
    | { scope: 'folder'; answer: Answer<FolderCall<never>> }
  )

export function openRoute<Query extends z.ZodObject>(
  declaration: Declaration<Query, OpenCall<z.output<Query>>>,
): Route {
  return { ...declaration, scope: 'open', levels: [] }
}

export function tokenRoute<Query extends z.ZodObject>(
  declaration: Declaration<Query, TokenCall<z.output<Query>>> & RouteAccess,
): Route {
  return { ...declaration, scope: 'token' }
}

export function folderRoute<Query extends z.ZodObject>(
  declaration: Declaration<Query, FolderCall<z.output<Query>>> & RouteAccess,
): Route {
  return { ...declaration, scope: 'folder' }
}
