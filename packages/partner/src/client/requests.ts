/**
 * Sends requests to the service with credentials, retries and polite waits, and makes errors with their remedy.
 * Requests that can be repeated are repeated a limited number of times. A wait is never shorter than Retry-After, and
 * the rest of it is random, so that many clients do not come back at the same moment.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { requireShape } from './answer-shapes.ts'
import { clientError, GrandlivreError, refusalOf } from './errors.ts'
import { type Answer, answerFacts, bestEncoding, type Encoding } from './http/answer.ts'
import { Connections, isLost } from './http/connection.ts'
import { type Limits, parseWhole, receivedAnswer } from './http/received-answer.ts'

/** Headers that ask for JSON, compressed if the route can compress. */
export const acceptJson = () => ({ Accept: 'application/json', 'Accept-Encoding': bestEncoding() })

/** A wait that is about to begin. */
export interface Wait {
  reason: string
  ms: number
}

export interface RequestsOptions {
  /** `https://host`, with a path if the service has one. A final `/api/v1` or slash is removed. */
  baseUrl: string
  /** `glv_api_...` or `glv_firm_...` */
  token: string
  /** The partner secret. */
  secret: string
  /** Id of the folder; needed with a firm token. */
  society?: string | undefined
  onWait?: ((wait: Wait) => void) | undefined
  /**
   * A connection counts as lost if less than 1 KB of its answer arrives within this many milliseconds. Default: 60,000.
   */
  stallMs?: number | undefined
  /** A request counts as lost if no answer begins within this many milliseconds. Default: 60,000. */
  answerMs?: number | undefined
  /**
   * Most bytes, after decompression, of an answer that is not a stream. A longer answer is refused. Default:
   * 16,000,000.
   */
  wholeBytesMax?: number | undefined
  /** How often a request is sent, or a stream resumed without progress, before it fails. Default: 10. */
  attemptsMax?: number | undefined
  /** For tests: replaces waiting, chance and the clock. */
  pacing?: Partial<Pacing> | undefined
}

export interface Pacing {
  sleep(ms: number, signal: AbortSignal | undefined): Promise<void>
  /** A number from 0 to 1. */
  random(): number
  /** Epoch milliseconds. */
  now(): number
}

export type QueryValue = string | number | boolean | readonly string[] | undefined

export interface Request {
  /** Default: GET. */
  method?: string
  /**
   * Whether the request only reads, so that it can be sent again even if it may have arrived. Default: true for GET and
   * HEAD.
   */
  isRead?: boolean
  /** The path without `/api/v1`, such as `/mad/accounts`. */
  path: string
  /**
   * The query. A parameter that is undefined or false is left out. An empty array is sent as an empty value, which the
   * service refuses.
   */
  query?: Readonly<Record<string, QueryValue>>
  headers?: Readonly<Record<string, string>>
  body?: string | Uint8Array
  signal?: AbortSignal | undefined
  /** Most milliseconds for which the service may hold the request before it answers. */
  heldMs?: number
  /** Replaces the option of the same name for this request, whose answer may be long. */
  wholeBytesMax?: number
}

/** A request to another address, such as that of a file. It carries no credentials. */
export interface ForeignRequest extends Omit<Request, 'path' | 'query'> {
  url: string
}

const defaults = { stallMs: 60_000, answerMs: 60_000, wholeBytesMax: 16_000_000, attemptsMax: 10 }
/**
 * Most attempts before the first answer. Until then a wrong address is a more likely cause than a service that is down.
 */
const firstAttemptsMax = 3
const backoffMs = 500
const backoffMaxMs = 30_000
/** The longest Retry-After that is obeyed. A longer wait becomes an error, so that the caller decides. */
const retryAfterMaxMs = 10 * 60_000
/** Most bytes that are read of an error's body. */
const refusalBytesMax = 64 * 1024

export class Requests {
  readonly attemptsMax: number
  readonly baseUrl: string
  readonly #limits: Limits & { answerMs: number }
  readonly #credentials: Record<string, string>
  readonly #connections = new Connections()
  readonly #onWait: ((wait: Wait) => void) | undefined
  readonly #pacing: Pacing
  #hasAnswered = false

  /** @throws {GrandlivreError} INVALID-OPTION */
  constructor(options: RequestsOptions) {
    this.baseUrl = checkedBaseUrl(options.baseUrl)
    this.#credentials = {
      Authorization: `Bearer ${checkedCredential('token', options.token)}`,
      'X-Third-Party-Secret': checkedCredential('secret', options.secret),
      ...(options.society === undefined
        ? {}
        : { 'society-id': checkedCredential('society', options.society) }),
    }
    this.#limits = {
      stallMs: checkedCount('stallMs', options),
      answerMs: checkedCount('answerMs', options),
      wholeBytesMax: checkedCount('wholeBytesMax', options),
    }
    this.attemptsMax = checkedCount('attemptsMax', options)
    this.#onWait = options.onWait
    this.#pacing = { sleep, random: Math.random, now: Date.now, ...options.pacing }
  }

  /**
   * Sends a request, repeats it if that may help, and resolves with an answer of status 2xx or 304.
   * @throws {GrandlivreError} for every other answer, and if no answer comes
   */
  send(request: Request | ForeignRequest): Promise<Answer> {
    return this.#repeated(request, () => this.#sendOnce(request))
  }

  /**
   * Does the same as `send`, and reads the whole body as JSON. A GET is sent again if its body is cut. The value of a
   * 304 is undefined.
   * @throws {GrandlivreError} also ANSWER-TOO-LONG, and UNEXPECTED-ANSWER for a malformed body
   */
  json(request: Request): Promise<{ answer: Answer; value: unknown; text: string }> {
    return this.#repeated(request, async () => {
      const answer = await this.#sendOnce(request)
      if (answer.status === 304) return { answer, value: undefined, text: await answer.text() }
      requireType(answer, 'application/json', request)
      try {
        const text = await answer.text()
        const value = parseWhole(text)
        requireShape(value, request, answer)
        return { answer, value, text }
      } catch (error) {
        if (request.signal?.aborted || !isLost(error)) throw error
        throw failureOf(request, error, answer.headers['x-request-id'])
      }
    })
  }

  /**
   * Waits before the next attempt, for at least as long as the service asks, and longer after each failed attempt.
   * @param attempt number of failed attempts so far, 1 or more
   */
  async pause(reason: string, attempt: number, signal: AbortSignal | undefined, floorMs = 0): Promise<void> {
    const drawn = this.#pacing.random() * Math.min(backoffMaxMs, backoffMs * 2 ** (attempt - 1))
    const ms = Math.round(floorMs + drawn)
    this.#onWait?.({ reason, ms })
    await this.#pacing.sleep(ms, signal)
    signal?.throwIfAborted()
  }

  /** Closes the connections that are kept open. */
  close(): void {
    this.#connections.close()
  }

  async #sendOnce(request: Request | ForeignRequest): Promise<Answer> {
    const { method = 'GET', body, signal, headers = {}, heldMs = 0 } = request
    const limits = { ...this.#limits, wholeBytesMax: request.wholeBytesMax ?? this.#limits.wholeBytesMax }
    const isOwn = 'path' in request
    const url = isOwn ? this.#urlOf(request) : new URL(request.url)
    let answer: Answer
    try {
      const response = await this.#connections.open({
        url,
        method,
        headers: { 'User-Agent': 'grandlivre-client', ...(isOwn ? this.#credentials : {}), ...headers },
        body,
        signal,
        answerMs: this.#limits.answerMs + heldMs,
      })
      answer = receivedAnswer(response, nameOf(request), limits, signal)
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      throw error instanceof GrandlivreError ? error : failureOf(request, error)
    }
    this.#hasAnswered = true
    const { status } = answer
    if ((status >= 200 && status < 300) || status === 304) return answer
    throw await this.#refusal(request, url, answer)
  }

  #urlOf({ path, query = {} }: Request): URL {
    const url = new URL(`${this.baseUrl}/api/v1${path}`)
    for (const [name, value] of Object.entries(query)) {
      if (value === undefined || value === false) continue
      // An empty filter is sent, too: if it were left out, everything would be selected.
      const values = Array.isArray(value) && value.length > 0 ? value : [value]
      for (const each of values) url.searchParams.append(name, String(each))
    }
    return url
  }

  async #refusal(request: Request | ForeignRequest, url: URL, answer: Answer): Promise<GrandlivreError> {
    const { status, headers } = answer
    const named = nameOf(request)
    const retryAfterMs = retryAfterOf(headers['retry-after'], this.#pacing.now())
    const facts = { ...answerFacts(answer), retryAfterMs }
    if (status < 300 || status >= 400) return refusalOf(await beginningOf(answer), named, facts)
    answer.discard()
    const message = `${named} is redirected to ${targetOf(headers['location'], url)}, and redirects are not followed`
    return clientError('UNEXPECTED-ANSWER', message, facts)
  }

  /** Repeats the work while another attempt may help. */
  async #repeated<Result>(request: Request | ForeignRequest, work: () => Promise<Result>): Promise<Result> {
    const { method = 'GET', isRead = method === 'GET' || method === 'HEAD', signal } = request
    for (let attempt = 1; ; attempt += 1)
      try {
        return await work()
      } catch (error) {
        if (!(error instanceof GrandlivreError)) throw error
        const { status, retryAfterMs } = error
        const attemptsMax = this.#hasAnswered
          ? this.attemptsMax
          : Math.min(firstAttemptsMax, this.attemptsMax)
        const isLast = attempt >= attemptsMax || (retryAfterMs ?? 0) > retryAfterMaxMs
        const isRefusedForNow = status === 429 || (status === 503 && retryAfterMs !== undefined)
        const mayPass = isRead && ((status === 0 && isLost(error.cause)) || [502, 503, 504].includes(status))
        if (isLast || !(isRefusedForNow || mayPass)) throw error
        await this.pause(error.message, attempt, signal, retryAfterMs)
      }
  }
}

/** @throws {unknown} the reason of the signal */
export const sleep: Pacing['sleep'] = (ms, signal) =>
  delay(ms, undefined, { signal }).catch(() => signal?.throwIfAborted())

/** Method and address of a request, without the query. */
function nameOf(request: Request | ForeignRequest): string {
  const { method = 'GET' } = request
  return `${method} ${'path' in request ? request.path : new URL(request.url).origin}`
}

/** The error for a request whose answer did not come or was cut. */
export function failureOf(request: Request | ForeignRequest, cause: unknown, requestId?: string) {
  const { message, code } = cause as NodeJS.ErrnoException
  const why = message === '' ? code : message
  const remedy = isLost(cause)
    ? undefined
    : 'Check the address, its port and its certificate. NODE_EXTRA_CA_CERTS names a file with authorities of your own.'
  return clientError('CONNECTION-FAILED', `${nameOf(request)}: ${why}`, { cause, requestId, remedy })
}

/**
 * Sends a request whose answer is read as a stream.
 * @param encoding of the answer's body. Default: the best that this runtime can read
 */
export async function sendFor(
  requests: Requests,
  type: string,
  encoding: Encoding | undefined,
  request: Request,
): Promise<Answer> {
  const headers = { Accept: type, 'Accept-Encoding': encoding ?? bestEncoding(), ...request.headers }
  const answer = await requests.send({ ...request, headers })
  requireType(answer, type, request)
  return answer
}

/**
 * Refuses pages of others, such as a sign-in page, or a page that a site shows at every address. Their status is often
 * 200.
 * @throws {GrandlivreError} UNEXPECTED-ANSWER if the body is of another media type
 */
export function requireType(answer: Answer, wanted: string, request: Request): void {
  const type = answer.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (type === wanted) return
  answer.discard()
  throw clientError(
    'UNEXPECTED-ANSWER',
    `${nameOf(request)} was answered with ${type ?? 'no media type'} instead of ${wanted}`,
    answerFacts(answer),
  )
}

/** The number in a header. @throws {GrandlivreError} UNEXPECTED-ANSWER if the header is missing or no number */
export function numberOf(answer: Answer, name: string): number {
  const text = answer.headers[name]
  if (text !== undefined && /^\d{1,15}$/.test(text)) return Number(text)
  const message = `The header ${name} ${text === undefined ? 'did not come' : `is "${text}"`}: a proxy on the way may change headers`
  throw clientError('UNEXPECTED-ANSWER', message, answerFacts(answer))
}

/** The target of a redirect, without its query, which might contain a secret. */
function targetOf(location: string | undefined, from: URL): string {
  if (location === undefined || !URL.canParse(location, from)) return 'no valid address'
  const { origin, pathname } = new URL(location, from)
  return origin + pathname
}

async function beginningOf(answer: Answer): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const chunk of answer.body) {
      text += decoder.decode(chunk, { stream: true })
      if (text.length > refusalBytesMax) break
    }
  } catch {
    // The text of the error was cut. Its status is known, which is enough.
  }
  return text
}

/** Reads `Retry-After`, which contains seconds or a date. @returns milliseconds from now, 0 or more */
export function retryAfterOf(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined
  if (/^\d+$/.test(header.trim())) return Number(header) * 1000
  const date = Date.parse(header)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

/** @throws {GrandlivreError} INVALID-OPTION */
export function checkedBaseUrl(baseUrl: unknown): string {
  const url = typeof baseUrl === 'string' && URL.canParse(baseUrl) ? new URL(baseUrl) : undefined
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw clientError('INVALID-OPTION', 'baseUrl is not an address such as https://ledger.example.com')
  if (url.username !== '' || url.password !== '')
    throw clientError(
      'INVALID-OPTION',
      'baseUrl contains a user name or password; pass token and secret instead',
    )
  if (url.search !== '' || url.hash !== '')
    throw clientError('INVALID-OPTION', 'baseUrl ends with a query or fragment; leave it out')
  const path = url.pathname.replace(/\/+$/, '').replace(/\/api\/v1$/, '')
  return url.origin + path.replace(/\/+$/, '')
}

/** Messages name the option, never its value. */
function checkedCredential(name: string, value: unknown): string {
  if (typeof value !== 'string' || value === '') throw clientError('INVALID-OPTION', `${name} is empty`)
  if (/[^\x21-\x7e]/.test(value))
    throw clientError(
      'INVALID-OPTION',
      `${name} contains a blank, a line break or another character that a header cannot hold`,
    )
  return value
}

function checkedCount(name: keyof typeof defaults, options: RequestsOptions): number {
  const count = options[name] ?? defaults[name]
  if (Number.isSafeInteger(count) && count > 0) return count
  throw clientError('INVALID-OPTION', `${name} is not a whole number above 0`)
}
