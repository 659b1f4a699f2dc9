import { randomUUID } from 'node:crypto'
import type { MiddlewareHandler } from 'hono'
import { answeredRequest } from '../audit/answer-facts.ts'
import type { AuditTrail } from '../audit/audit-trail.ts'
import { withoutSecrets } from '../log.ts'
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

/** Assigns every request its id, and logs and records it once its answer has ended or was cut off. */
export function acceptRequestId({
  log,
  audit,
}: Pick<Services, 'log'> & { audit: Pick<AuditTrail, 'record'> }): MiddlewareHandler<Edge> {
  return async (c, next) => {
    const started = performance.now()
    const requestId = requestIdOf(c.req.header('x-request-id'))
    c.set('requestId', requestId)
    c.header('x-request-id', requestId)
    const { outgoing } = c.env
    outgoing.once('close', () => {
      const principal = c.get('principal')
      const code = c.get('errorCode')
      const folderId = c.get('folderId')
      const status = outgoing.headersSent ? outgoing.statusCode : undefined
      const isWhole = outgoing.writableFinished
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
        ...(isWhole ? {} : { cutOff: true }),
        ...(principal === undefined ? {} : { tokenId: principal.tokenId, schemaId: principal.schemaId }),
        ...(folderId === undefined ? {} : { folderId }),
      })
    })
    await next()
  }
}
