/**
 * Spans: one for each request, export and delivery attempt, and one for each stage of an export. A span names its route
 * and never its path or query, which hold ids and signatures.
 */
import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import type { DeliveryOutcome } from '../metrics.ts'
import type { AnsweredRequest, CallerTrace, EndedExport, StageSeconds, TraceHeaders } from '../telemetry.ts'

const propagator = new W3CTraceContextPropagator()
const read = {
  get: (headers: CallerTrace, name: string) => headers[name as keyof CallerTrace],
  keys: (headers: CallerTrace) => Object.keys(headers),
}
const write = {
  set: (headers: CallerTrace, name: string, value: string) => {
    if (value !== '') headers[name as keyof CallerTrace] = value
  },
}

/** The trace that the headers continue; no trace if they are absent or malformed. */
function continued(headers: CallerTrace | undefined): Context {
  return headers?.traceparent === undefined ? ROOT_CONTEXT : propagator.extract(ROOT_CONTEXT, headers, read)
}

function headersOf(span: Span): TraceHeaders {
  const headers: CallerTrace = {}
  propagator.inject(trace.setSpan(ROOT_CONTEXT, span), headers, write)
  return headers as TraceHeaders
}

export type Spans = ReturnType<typeof createSpans>

export function createSpans(tracer: Tracer) {
  /** The stages after the first row alternate chunk by chunk, so they share one span that has the seconds of each. */
  const addStages = (parent: Context, stages: StageSeconds, startedAt: number, endedAt: number) => {
    let at = startedAt
    const add = (name: string, until: number, attributes: Attributes = {}) => {
      tracer.startSpan(`export ${name}`, { startTime: at, attributes }, parent).end(until)
      at = until
    }
    if (stages.queue !== undefined) add('queue', startedAt + stages.queue * 1_000)
    for (const name of ['wait', 'snapshot', 'first_row'] as const)
      add(name, Math.min(at + (stages[name] ?? 0) * 1_000, endedAt))
    const taking = Object.entries(stages).filter(([name]) => ['render', 'send', 'store'].includes(name))
    const seconds = taking.map(([name, value]) => [`grandlivre.export.${name}`, value])
    add('rows', endedAt, Object.fromEntries(seconds))
  }
  return {
    request: (method: string, caller: CallerTrace) => {
      const attributes = { 'http.request.method': method, 'url.scheme': 'http' }
      const span = tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, continued(caller))
      const end = ({ route, status, errorType, requestId }: AnsweredRequest) => {
        span.setAttribute('grandlivre.request.id', requestId)
        if (route !== undefined) {
          span.updateName(`${method} ${route}`)
          span.setAttribute('http.route', route)
        }
        if (status !== undefined) span.setAttribute('http.response.status_code', status)
        if (errorType !== undefined) span.setAttribute('error.type', errorType)
        // A refused request is not an error of the server.
        if (status === undefined || status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
        span.end()
      }
      return { trace: headersOf(span), end }
    },
    /** Creates the spans of an export after it has ended: its thread measures durations only. */
    export: (ended: EndedExport): void => {
      const { kind, format, outcome, rows, bytes, startedAt, facts, trace: parent, requestId } = ended
      const options = { kind: parent ? SpanKind.INTERNAL : SpanKind.CONSUMER, startTime: startedAt }
      const span = tracer.startSpan(`export ${kind}`, options, continued(parent))
      span.setAttributes({
        'grandlivre.export.kind': kind,
        'grandlivre.export.format': format,
        outcome,
        'grandlivre.export.rows': rows,
        'grandlivre.export.bytes': bytes,
        ...(requestId === undefined ? {} : { 'grandlivre.request.id': requestId }),
      })
      if (outcome === 'failed' || outcome === 'broken') span.setStatus({ code: SpanStatusCode.ERROR })
      const endedAt = Date.now()
      if (facts) addStages(trace.setSpan(ROOT_CONTEXT, span), facts.stages, startedAt, endedAt)
      span.end(endedAt)
    },
    delivery: (parent: TraceHeaders | undefined) => {
      const attributes = { 'http.request.method': 'POST' }
      const options = { kind: SpanKind.CLIENT, attributes }
      const span = tracer.startSpan('delivery attempt', options, continued(parent))
      const end = (outcome: DeliveryOutcome, status: number | null) => {
        span.setAttribute('outcome', outcome)
        if (status !== null) span.setAttribute('http.response.status_code', status)
        if (outcome !== 'delivered') {
          span.setAttribute('error.type', outcome === 'refused' ? String(status) : outcome)
          span.setStatus({ code: SpanStatusCode.ERROR })
        }
        span.end()
      }
      return { trace: headersOf(span), end }
    },
  }
}
