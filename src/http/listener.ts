/**
 * Node's server around the app: sets the timeouts, and answers requests that never reach the app, because they are not
 * HTTP or are too large, with errors in our shape.
 */

import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { getRequestListener } from '@hono/node-server'
import type { Context, MiddlewareHandler } from 'hono'
import { routePath } from 'hono/route'
import { type AuditTrail, answeredRequest } from '../audit/audit-trail.ts'
import { limits } from '../config.ts'
import { AppError } from '../errors.ts'
import { type Log, withoutSecrets } from '../log.ts'
import type { CallerTrace, Telemetry } from '../telemetry/telemetry.ts'
import type { ListenerTiming } from '../timing.ts'
import { errorBody, errorHeaders } from './errors.ts'
import type { Edge } from './route.ts'
import type { Services } from './services.ts'

/** Twice the longest permitted URL, so that a longer one still gets an error that says what is wrong. */
const headerBytesMax = 2 * limits.urlBytesMax

/** Reports requests that reach no route. */
type OnRefused = (requestId: string, error: AppError) => void

/** @param fetch the app's function that answers requests */
export function createListener(
  fetch: Parameters<typeof getRequestListener>[0],
  { log, telemetry }: { log: Log; telemetry: Telemetry },
  timing: ListenerTiming,
): Server {
  const onRefused: OnRefused = (requestId, { code }) => {
    log('request.refused', { requestId, code })
    telemetry.count('grandlivre.request.refused', { 'error.type': code })
  }
  const listener = getRequestListener(fetch)
  const server = createServer(
    {
      maxHeaderSize: headerBytesMax,
      headersTimeout: timing.headersMs,
      requestTimeout: timing.requestMs,
      // Longer than the minute after which load balancers drop an idle connection. Otherwise we might close it just as
      // they send the next request.
      keepAliveTimeout: 75_000,
      // A missing Host is refused below, in our shape.
      requireHostHeader: false,
      connectionsCheckingInterval: timing.checkMs,
    },
    (incoming, outgoing) => {
      const refused = refusal(incoming)
      if (refused) return refuse(refused, incoming, outgoing, onRefused)
      // Nothing here depends on the host, and the adapter answers an empty 400 to hosts that it would normalize (`a:`,
      // long forms of IPv6).
      incoming.headers.host = 'localhost'
      void listener(incoming, outgoing)
    },
  )
  // Closes a connection without a byte in either direction for this long: its client has stopped reading the export.
  server.setTimeout(timing.idleMs)
  server.on('clientError', (error, socket) => answerUnparsed(error, socket, onRefused, timing))
  // Without a listener Node answers 417 with an empty body.
  server.on('checkExpectation', (incoming, outgoing) => {
    const issue = { parameter: 'Expect', message: 'must be 100-continue if present' }
    refuse(new AppError('ERR-VALIDATION', { issues: [issue] }), incoming, outgoing, onRefused)
  })
  return server
}

/** The answer that occupies a connection; undefined if there is none. */
export function answerOn(socket: Duplex): ServerResponse | undefined {
  return (socket as Duplex & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined
}

/** Most bytes that the body of a request to this path may have. */
export function bodyBytesMaxOf(path: string): number {
  return limits.largeBody.paths.includes(path) ? limits.largeBody.bytesMax : limits.bodyBytesMax
}

function refusal(incoming: IncomingMessage): AppError | undefined {
  const target = incoming.url ?? ''
  if (Buffer.byteLength(target) > limits.urlBytesMax)
    return new AppError('ERR-PAYLOAD-TOO-LARGE', { message: 'The URL of the request is too large' })
  if (Number(incoming.headers['content-length'] ?? 0) > bodyBytesMaxOf(target.split('?', 1)[0]!))
    return new AppError('ERR-PAYLOAD-TOO-LARGE')
  const [host = '', ...others] = incoming.headersDistinct['host'] ?? []
  if (others.length > 0 || !/^[\w.:[\]-]+$/.test(host) || !URL.canParse(`http://${host}`))
    return new AppError('ERR-VALIDATION', {
      issues: [{ parameter: 'Host', message: 'must name this server' }],
    })
  // No route has such a path: `*`, an absolute URL, or one with a backslash.
  if (!/^\/[^\\]*$/.test(target.split('?', 1)[0] ?? '')) return new AppError('ERR-NOT-FOUND')
  return undefined
}

function refuse(
  error: AppError,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  onRefused: OnRefused,
): void {
  const requestId = requestIdOf(incoming.headers['x-request-id'] as string | undefined)
  const request = { url: incoming.url ?? '', method: incoming.method ?? '', requestId }
  const body = JSON.stringify(errorBody(error, request))
  outgoing.writeHead(error.status, {
    ...errorHeaders(error),
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'x-request-id': requestId,
    // The body is not read, so the connection cannot be reused.
    Connection: 'close',
  })
  outgoing.end(body)
  onRefused(requestId, error)
}

/** Answers bytes that could not be parsed as a request, so there is no URL, method or id to quote. */
function answerUnparsed(
  cause: NodeJS.ErrnoException,
  socket: Duplex,
  onRefused: OnRefused,
  timing: ListenerTiming,
): void {
  // In the middle of an answer, these bytes would be read as its continuation. While an earlier request waits for its
  // answer, they would be read as that answer.
  const answering = answerOn(socket)
  const isAnswered = answering && (answering.headersSent || answering.req.complete)
  if (!socket.writable || isAnswered || cause.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  // Clients and load balancers open connections ahead of need. An unsolicited answer would be read as the answer to a
  // request sent at that moment, so such a connection stays open like any idle one, until `idleMs`.
  if (cause.code === 'ERR_HTTP_REQUEST_TIMEOUT' && (socket as Socket).bytesRead === 0) return
  const error = parseErrorOf(cause.code, timing)
  const requestId = requestIdOf(undefined)
  onRefused(requestId, error)
  const body = JSON.stringify(errorBody(error, { url: '', method: '', requestId }))
  const reason = error.status === 413 ? '413 Payload Too Large' : '400 Bad Request'
  socket.end(
    `HTTP/1.1 ${reason}\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nx-request-id: ${requestId}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}

function parseErrorOf(code: string | undefined, { headersMs, requestMs }: ListenerTiming): AppError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new AppError('ERR-PAYLOAD-TOO-LARGE', { message: 'The headers of the request are too large' })
  const message =
    code === 'ERR_HTTP_REQUEST_TIMEOUT'
      ? `must be sent within ${headersMs / 1000} seconds, and ${requestMs / 1000} with its body`
      : 'must be HTTP/1.1'
  return new AppError('ERR-VALIDATION', { issues: [{ parameter: 'request', message }] })
}

/**
 * The ids that partners and proxies use: UUIDs, ULIDs, base64, `Root=1-67891233-abc`. No blank, quote or control
 * character, so that logs and headers need no escaping.
 */
const validRequestId = /^[\w.:;=+/@-]{1,128}$/

/** The id of a request: its `x-request-id` if valid, otherwise a new UUID. */
function requestIdOf(header: string | undefined): string {
  const isValid = header !== undefined && validRequestId.test(header) && withoutSecrets(header) === header
  return isValid ? header : randomUUID()
}

/**
 * The template of the request's route, `/api/v1/webhook/{id}`, for metrics and traces: a path with ids would give each id
 * a metric. Undefined if no route has this path.
 */
function routeTemplate(c: Context<Edge>): string | undefined {
  const path = routePath(c, -1)
  return /^\/?\*$/.test(path) ? undefined : path.replaceAll(/:(\w+)/g, '{$1}')
}

/** Assigns every request its id, and reports and records it once its answer has ended or was cut off. */
export function acceptRequestId(
  services: Pick<Services, 'log' | 'telemetry'> & { audit: Pick<AuditTrail, 'record'> },
): MiddlewareHandler<Edge> {
  const { log, telemetry, audit } = services
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
