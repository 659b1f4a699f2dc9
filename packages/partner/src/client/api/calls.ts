/** Calls of all routes that do not stream, with the types of the OpenAPI document. */
import { requireShape } from '../answer-shapes.ts'
import { clientError, GrandlivreError } from '../errors.ts'
import { answerFacts } from '../http/answer.ts'
import { type Request, type Requests, requireType } from '../requests.ts'
import type { Routes } from './routes.ts'

export type Method = keyof Routes
export type Path<M extends Method> = keyof Routes[M] & string

type Given<Route> = {
  [Part in keyof Route as Exclude<Part, 'answer'>]: Part extends 'path' ? Ids<Route[Part]> : Route[Part]
} & { signal?: AbortSignal | undefined }

/** The ids for a path, which names them in braces. An id may be a text or a number. */
type Ids<Names> = { [Name in keyof Names]: string | number }

/** The arguments of a call: what the route needs, and `signal`. They may be omitted if the route needs nothing. */
export type Call<M extends Method, P extends Path<M>> =
  Record<never, never> extends Given<Routes[M][P]>
    ? [call?: Given<Routes[M][P]>]
    : [call: Given<Routes[M][P]>]

/** The JSON body of the route's answer. */
export type AnswerOf<M extends Method, P extends Path<M>> = Routes[M][P] extends { answer: infer Answer }
  ? Answer
  : never

/** The version of the interface that these types describe. */
export const interfaceVersion = '1.0.0'

/** @throws {GrandlivreError} if the answer is an error */
export async function callRoute<M extends Method, P extends Path<M>>(
  requests: Requests,
  method: M,
  path: P,
  ...[call]: Call<M, P>
): Promise<AnswerOf<M, P>> {
  const {
    path: ids = {},
    query = {},
    body,
    signal,
  }: Omit<Partial<Request>, 'path' | 'body'> & {
    path?: Record<string, string | number>
    body?: unknown
  } = call ?? {}
  const request: Request = {
    method: method.toUpperCase(),
    path: filled(path, ids),
    query: path.startsWith('/mad/') ? { version: interfaceVersion, ...query } : query,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }),
    signal,
  }
  if (method === 'get') return (await requests.json(request)).value as AnswerOf<M, P>
  const answer = await requests.send(request)
  if (answer.status === 204) {
    answer.discard()
    return null as AnswerOf<M, P>
  }
  requireType(answer, 'application/json', request)
  try {
    const value = await answer.json()
    requireShape(value, request, answer)
    return value as AnswerOf<M, P>
  } catch (cause) {
    if (signal?.aborted || cause instanceof GrandlivreError) throw cause
    const message = `The answer to ${request.method} ${path} was cut: ${(cause as Error).message}`
    throw clientError('ANSWER-LOST', message, { ...answerFacts(answer), cause })
  }
}

function filled(path: string, ids: Record<string, string | number>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const id = ids[name]
    if (id === undefined || id === '') throw clientError('INVALID-OPTION', `${path} needs path.${name}`)
    return encodeURIComponent(id)
  })
}
