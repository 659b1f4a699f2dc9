/** One attempt at a delivery, over HTTP. */
import type { Agent, Dispatcher } from 'undici'
import packageJson from '../../../package.json' with { type: 'json' }
import { type Delivered, deliveryHeaders } from '../../../packages/contract/src/webhook-delivery.ts'
import { type Config, limits } from '../../config.ts'
import type { DeliveryOutcome } from '../../telemetry/metrics.ts'
import type { Telemetry, TraceHeaders } from '../../telemetry/telemetry.ts'
import type { DeliveryTiming } from '../../timing.ts'
import { guardedAgent, type TargetRules, vetUrl } from '../target.ts'
import { isSuccess } from './delivery.ts'
import { faultOf, type NoResponseFault, outcomesOfFaults, TooLate } from './fault.ts'

/** What all of a process's requests to subscribers share. The caller destroys the agent. */
export interface HttpToSubscribers {
  /** Connects to vetted addresses only. */
  agent: Agent
  rules: TargetRules
  timing: DeliveryTiming
  telemetry: Telemetry
}

export function httpToSubscribers(
  { webhookAllowInsecure: allowInsecure }: Pick<Config, 'webhookAllowInsecure'>,
  timing: DeliveryTiming,
  telemetry: Telemetry,
): HttpToSubscribers {
  const rules = { allowInsecure }
  return { agent: guardedAgent(rules), rules, timing, telemetry }
}

interface DeliveryRequest extends Delivered {
  postUrl: string
  /** Trace headers of the request that asked for this attempt (a ping). */
  trace?: TraceHeaders | undefined
}

export interface DeliveryResponse {
  /** HTTP status; null if no response arrived within `timeoutMs` (timing.ts). */
  status: number | null
  retryAfter: string | null
  /** The header `date`, which shows the receiver's clock; null if there is none. */
  date: string | null
  /** The first bytes of the response, at most `limits.deliveryAnswerBytes`; null if there was no response. */
  answer: Buffer | null
  /** Why there was no response, as a text; null if there was one. */
  error: string | null
  /** Why there was no response, as one word; null if there was one. */
  fault: NoResponseFault | null
  latencyMs: number
}

/**
 * Sends the request. The status decides the result as soon as it arrives. The rest of the response is kept only for
 * people to read, so it may break off. A redirect counts as any other status outside 2xx and is not followed.
 * @param stopped aborts the attempt when the process ends
 * @throws if the attempt was aborted: then its result is unknown
 */
export async function post(
  http: HttpToSubscribers,
  request: DeliveryRequest,
  stopped: AbortSignal,
): Promise<DeliveryResponse> {
  const reported = http.telemetry.deliveryBegan(request.trace)
  const response = await send(http, { ...request, trace: reported.trace }, stopped)
  reported.ended(outcomeOf(response), response.status)
  return response
}

function outcomeOf({ status, fault }: DeliveryResponse): DeliveryOutcome {
  if (fault !== null) return outcomesOfFaults[fault]
  return isSuccess(status) ? 'delivered' : 'refused'
}

async function send(
  { agent, rules, timing: { timeoutMs } }: HttpToSubscribers,
  request: DeliveryRequest,
  stopped: AbortSignal,
): Promise<DeliveryResponse> {
  const started = performance.now()
  const noResponse = { status: null, retryAfter: null, date: null, answer: null }
  const latency = () => Math.round(performance.now() - started)
  // Checked again: the rules may have become stricter since the address was registered.
  const refused = vetUrl(request.postUrl, rules)
  if (refused !== undefined) {
    const error = `The address ${refused}`
    return { ...noResponse, error, fault: 'address-refused', latencyMs: latency() }
  }
  const ending = new AbortController()
  const tooLate = new TooLate(`no response within ${timeoutMs / 1000} seconds`)
  const deadline = setTimeout(() => ending.abort(tooLate), timeoutMs)
  // Not AbortSignal.any: a signal derived from one that lives as long as the process may never be freed.
  const stop = () => ending.abort(stopped.reason)
  stopped.addEventListener('abort', stop)
  try {
    stopped.throwIfAborted()
    const response = await agent.request({ ...requestOf(request), signal: ending.signal })
    const latencyMs = latency()
    const answer = await beginningOf(response.body)
    const header = (name: string) => [response.headers[name]].flat()[0] ?? null
    return {
      status: response.statusCode,
      retryAfter: header('retry-after'),
      date: header('date'),
      answer,
      error: null,
      fault: null,
      latencyMs,
    }
  } catch (error) {
    stopped.throwIfAborted()
    return { ...noResponse, error: describe(error), fault: faultOf(error), latencyMs: latency() }
  } finally {
    clearTimeout(deadline)
    stopped.removeEventListener('abort', stop)
  }
}

function requestOf({ postUrl, trace, ...delivered }: DeliveryRequest): Dispatcher.RequestOptions {
  const url = new URL(postUrl)
  return {
    origin: url.origin,
    path: url.pathname + url.search,
    method: 'POST',
    headers: { ...deliveryHeaders(delivered, packageJson.version), ...trace },
    body: delivered.body,
    // Undici measures both of these time-outs between two bytes; ours covers the whole request, from connection to end.
    headersTimeout: 0,
    bodyTimeout: 0,
  }
}

/**
 * Reads the beginning of a response. If it is read to its end, the next delivery can use its connection; a longer one
 * is cut off.
 */
async function beginningOf(body: Dispatcher.ResponseData['body']): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of body) {
      if (bytes < limits.deliveryAnswerBytes) chunks.push(chunk)
      bytes += chunk.length
      if (bytes > limits.deliveryAnswerBytesMax) break
    }
  } catch {
    // The response broke off or timed out after its status had arrived.
  }
  return Buffer.concat(chunks).subarray(0, limits.deliveryAnswerBytes)
}

/** Describes the error for staff and the owner, in the system's own words. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const errors = error instanceof AggregateError ? error.errors : [error]
  const texts = errors.map((each) => (each instanceof Error ? each.message : String(each)))
  return texts.join('; ').slice(0, 500) || error.name
}
