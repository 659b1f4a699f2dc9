/** One attempt to hand a delivery to its subscriber. */
import type { Dispatcher } from 'undici'
import packageJson from '../../../package.json' with { type: 'json' }
import { limits } from '../../config.ts'
import { signatureOf } from '../signature.ts'
import { type TargetRules, vetUrl } from '../target.ts'

const userAgent = `Grandlivre/${packageJson.version}`

export interface DeliveryRequest {
  postUrl: string
  /** As it is stored. */
  body: Buffer
  /** The partner's, in plain. */
  secret: string
  /** The moment of sending, epoch milliseconds. */
  date: number
}

export interface DeliveryResponse {
  /** Null: none came within `limits.deliveryTimeoutMs`. */
  status: number | null
  retryAfter: string | null
  /** How the answer began, `limits.deliveryAnswerBytes` at the most; null where there was none. */
  answer: Buffer | null
  /** Why there was no answer. */
  error: string | null
  latencyMs: number
}

/**
 * What the receiver says counts as soon as its status is there: the rest is only kept to be read by staff, so it may
 * break off. Redirects are answers like any other that is no 2xx, and lead nowhere.
 * @param stopped ends the attempt when the process is to end
 * @throws where it was stopped: then nobody knows what the receiver made of it
 */
export async function post(
  agent: Dispatcher,
  rules: TargetRules,
  request: DeliveryRequest,
  stopped: AbortSignal,
): Promise<DeliveryResponse> {
  const started = performance.now()
  const noResponse = { status: null, retryAfter: null, answer: null }
  const latency = () => Math.round(performance.now() - started)
  // The rules may have become stricter since the address was registered.
  const refused = vetUrl(request.postUrl, rules)
  if (refused !== undefined) return { ...noResponse, error: `The address ${refused}`, latencyMs: latency() }
  const ending = new AbortController()
  const deadline = setTimeout(() => ending.abort(new Error(timeoutMessage)), limits.deliveryTimeoutMs)
  // Not AbortSignal.any: what it makes of a signal that lasts as long as the process may stay with it.
  const stop = () => ending.abort(stopped.reason)
  stopped.addEventListener('abort', stop)
  try {
    stopped.throwIfAborted()
    const response = await agent.request({ ...requestOf(request), signal: ending.signal })
    const latencyMs = latency()
    const answer = await beginningOf(response.body)
    const retryAfter = response.headers['retry-after']
    return {
      status: response.statusCode,
      retryAfter: (Array.isArray(retryAfter) ? retryAfter[0] : retryAfter) ?? null,
      answer,
      error: null,
      latencyMs,
    }
  } catch (error) {
    stopped.throwIfAborted()
    return { ...noResponse, error: describe(error), latencyMs: latency() }
  } finally {
    clearTimeout(deadline)
    stopped.removeEventListener('abort', stop)
  }
}

const timeoutMessage = `no answer within ${limits.deliveryTimeoutMs / 1000} seconds`

function requestOf({ postUrl, body, secret, date }: DeliveryRequest): Dispatcher.RequestOptions {
  const url = new URL(postUrl)
  return {
    origin: url.origin,
    path: url.pathname + url.search,
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': userAgent,
      date: String(date),
      signature: signatureOf(secret, body, String(date)),
    },
    body,
    // Both are counted between two bytes; ours is counted once, from the connection to the end.
    headersTimeout: 0,
    bodyTimeout: 0,
  }
}

/** An answer that is read to its end leaves its connection to the next delivery; a longer one is cut off. */
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
    // It broke off, or came to its deadline. Its status was there before.
  }
  return Buffer.concat(chunks).subarray(0, limits.deliveryAnswerBytes)
}

/** For staff: what went wrong, with what the system calls it. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const errors = error instanceof AggregateError ? error.errors : [error]
  const texts = errors.map((each) => (each instanceof Error ? each.message : String(each)))
  return texts.join('; ').slice(0, 500) || error.name
}
