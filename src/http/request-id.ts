import { randomUUID } from 'node:crypto'
import type { Context, MiddlewareHandler } from 'hono'
import { routePath } from 'hono/route'
import { answeredRequest } from '../audit/answer-facts.ts'
import type { AuditTrail } from '../audit/audit-trail.ts'
import { withoutSecrets } from '../log.ts'
import type { CallerTrace } from '../telemetry/telemetry.ts'
import type { Edge } from './route.ts'
import type { Services } from './services.ts'

/**
 * The ids that partners and proxies use: UUIDs, ULIDs, base64, `Root=1-67891233-abc`. No blank, quote or control
 * character, so that logs and headers need no escaping.
 */
const validRequestId = /^[\w.:;=+/@-]{1,128}$/

/** The id of a request: its `x-request-id` if valid, otherwise a new UUID. */
export function requestIdOf(header: string | undefined): string {
  const isValid = header !== undefined && validRequestId.test(header) && withoutSecrets(header) === header
  return isValid ? header : randomUUID()
}

/**
 * The template of a route, for metrics and traces, which must not grow with ids: `/api/v1/webhook/{id}`. Undefined if no
 * route has this path.
 */
function routeTemplate(c: Context<Edge>): string | undefined {
  const path = routePath(c, -1)
  return /^\/?\*$/.test(path) ? undefined : path.replaceAll(/:(\w+)/g, '{$1}')
}

/** Assigns every request its id, and reports and records it once its answer has ended or was cut off. */
export function acceptRequestId({
  log,
  telemetry,
  audit,
}: Pick<Services, 'log' | 'telemetry'> & {
  audit: Pick<AuditTrail, 'record'>
}): MiddlewareHandler<Edge> {
  return async (c, next) => {
    const started = performance.now()
    const requestId = requestIdOf(c.req.header('x-request-id'))
    c.set('requestId', requestId)
    c.header('x-request-id', requestId)
    const { traceparent, tracestate } = c.env.incoming.headers as CallerTrace
    const reported = telemetry.requestBegan(c.req.method, { traceparent, tracestate })
    c.set('telemetry', reported)
    const { outgoing } = c.env
    outgoing.once('close', () => {
      const principal = c.get('principal')
      const code = c.get('errorCode')
      const folderId = c.get('folderId')
      const status = outgoing.headersSent ? outgoing.statusCode : undefined
      const isWhole = outgoing.writableFinished
      const errorType = code ?? (isWhole ? undefined : 'cut_off')
      reported.ended({ route: routeTemplate(c), status, errorType, requestId })
      const facts = c.get('audited')
      if (facts) {
        const end = { at: new Date(), method: c.req.method, requestId, folderId, status, isWhole, code }
        audit.record(answeredRequest(facts, end))
      }
      log('request.ended', {
        requestId,
        method: c.req.method,
        path: c.req.path.slice(0, 256),
        ...(status === undefined ? {} : { status }),
        ...(code === undefined ? {} : { code }),
        ms: Math.round(performance.now() - started),
        ...c.get('sent'),
        ...(isWhole ? {} : { cutOff: true }),
        ...(principal === undefined ? {} : { tokenId: principal.tokenId, schemaId: principal.schemaId }),
        ...(folderId === undefined ? {} : { folderId }),
      })
    })
    await next()
  }
}
