/** The partner of the demo: somebody else's program, which knows the service by HTTP alone. */
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'

export interface Partner {
  /** `http://127.0.0.1:8080` */
  baseUrl: string
  token: string
  secret: string
}

/** An answer that is neither 200 nor 304. */
export class Refusal extends Error {
  readonly status: number
  /** Seconds, as the service asks for; undefined where it does not. */
  readonly retryAfter: number | undefined

  constructor(message: string, status: number, retryAfter: string | undefined) {
    super(message)
    this.name = 'Refusal'
    this.status = status
    this.retryAfter = retryAfter === undefined ? undefined : Number(retryAfter)
  }
}

/**
 * Sends a request and gives the answer as soon as its head is there.
 * @param path with its query
 * @throws {Refusal} for every status but 200 and 304, with what the service says about it
 */
export async function ask(
  { baseUrl, token, secret }: Partner,
  path: string,
  headers: Record<string, string> = {},
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const sent = request(`${baseUrl}${path}`, {
    headers: { Authorization: `Bearer ${token}`, 'X-Third-Party-Secret': secret, ...headers },
  })
  sent.on('response', resolve)
  sent.on('error', reject)
  sent.end()
  const answer = await promise
  const { statusCode: status = 0 } = answer
  if (status === 200 || status === 304) return answer
  const { error } = (await json(answer)) as { error: { code: string; message: string } }
  throw new Refusal(
    `GET ${path} was answered with ${status} ${error.code}: ${error.message}`,
    status,
    answer.headers['retry-after'],
  )
}

/** A small answer, as what it means. */
export async function askForJson<Shape>(partner: Partner, path: string): Promise<Shape> {
  return (await json(await ask(partner, path))) as Shape
}
