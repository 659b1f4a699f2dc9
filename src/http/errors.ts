/** The shape of every error answer (docs/spec/interface.md#errors). */
import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { type ErrorStatus, errorCodes } from '../../packages/contract/src/error-codes.ts'
import { unavailableIfMissing } from '../db/outage.ts'
import { AppError } from '../errors.ts'
import { named } from '../formats/items/values.ts'
import { withoutSecrets } from '../log.ts'
import type { Edge } from './route.ts'
import type { Services } from './services.ts'

export const ErrorBody = named('ErrorAnswer', {
  error: named('ApiError', {
    code: z.string().openapi({
      description: `One of ${Object.keys(errorCodes).join(', ')}`,
      example: 'ERR-VALIDATION',
    }),
    message: z.string(),
    details: named('ErrorDetails', {
      url: z.string(),
      method: z.string(),
      requestedAt: z.iso.datetime(),
      requestId: z.string(),
      issues: z.array(named('Issue', { parameter: z.string(), message: z.string() })).optional(),
      producerIds: z
        .array(z.string())
        .optional()
        .openapi({ description: 'With ERR-AMBIGUOUS-ENTRY: the entries, ascending, at most 100' }),
      oldest: z
        .string()
        .optional()
        .openapi({ description: 'With ERR-EVENTS-EXPIRED: the first number that is kept' }),
    }),
  }),
})

/** Longer URLs are cut in errors: the caller knows what it sent, and an answer need not repeat kilobytes of it. */
const quotedUrlMax = 2048

/**
 * The body of an error answer. Tokens and secrets are masked in everything that it quotes.
 * @param request its `url` is path and query as sent
 */
export function errorBody(
  error: AppError,
  request: { url: string; method: string; requestId: string },
): z.infer<typeof ErrorBody> {
  const { code, producerIds, oldest } = error
  const issues = error.issues?.map((issue) => ({ ...issue, parameter: withoutSecrets(issue.parameter) }))
  const url = withoutSecrets(request.url).slice(0, quotedUrlMax)
  const { method, requestId } = request
  const requestedAt = new Date().toISOString()
  const details = { url, method, requestedAt, requestId, issues, producerIds, oldest }
  return { error: { code, message: withoutSecrets(error.message), details } }
}

/** Headers of an error: its own, those its status requires, and `no-store`. */
export function errorHeaders(error: AppError): Record<string, string> {
  return { ...headersByStatus[error.status], ...error.headers, 'Cache-Control': 'no-store' }
}

const headersByStatus: Partial<Record<ErrorStatus, Record<string, string>>> = {
  401: { 'WWW-Authenticate': 'Bearer' },
  429: { 'Retry-After': '5' },
  503: { 'Retry-After': '5' },
}

/**
 * For Hono's `onError`: answers an error that was thrown before the answer began. An error with a status of 500 or more is
 * a fault and is logged, unless it announces maintenance or the stop of the process, or the client has left. An error of
 * any other class than AppError becomes 503 if it says that something is missing, otherwise 500.
 */
export function answerError(
  thrown: Error,
  c: Context<Edge>,
  { log, readiness }: Pick<Services, 'log'> & { readiness?: Services['readiness'] },
): Response {
  const error = asAppError(thrown)
  readiness?.recordFailure(error)
  const requestId = c.get('requestId')
  // A failure caused by a client that disconnected is not a fault, and its answer has no reader.
  const isMeant = error.code === 'ERR-API-UNDER-MAINTENANCE' || error === readiness?.leaving
  const isFault = error.status >= 500 && !isMeant && !c.env.outgoing.closed
  if (isFault) log('request.failed', { requestId, code: error.code, error: error.cause ?? error })
  c.set('errorCode', error.code)
  const request = { url: c.env.incoming.url ?? '', method: c.req.method, requestId }
  return c.json(errorBody(error, request), error.status, errorHeaders(error))
}

function asAppError(thrown: Error): AppError {
  const error = unavailableIfMissing(thrown)
  return error instanceof AppError ? error : new AppError('ERR-INTERNAL', { cause: thrown })
}
