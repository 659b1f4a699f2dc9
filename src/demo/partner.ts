/** The partner of the demo: somebody else's program, which knows the service by HTTP alone. */
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'

export interface Partner {
  /** `http://127.0.0.1:8080` */
  baseUrl: string
  token: string
  secret: string
}

/**
 * Sends a request and gives the answer as soon as its head is there. Where it asked too often, it comes back when it is
 * told to.
 * @param path with its query
 * @throws {Error} for every other status but 200 and 304, with what the service says about it
 */
export async function ask(
  partner: Partner,
  path: string,
  headers: Record<string, string> = {},
): Promise<IncomingMessage> {
  for (;;) {
    const answer = await send(partner, path, headers)
    const { statusCode: status = 0 } = answer
    if (status === 200 || status === 304) return answer
    const { error } = (await json(answer)) as { error: { code: string; message: string } }
    const retryAfter = answer.headers['retry-after']
    if (status !== 429 || retryAfter === undefined)
      throw new Error(`GET ${path} was answered with ${status} ${error.code}: ${error.message}`)
    await delay(Number(retryAfter) * 1000)
  }
}

function send(
  { baseUrl, token, secret }: Partner,
  path: string,
  headers: Record<string, string>,
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const sent = request(`${baseUrl}${path}`, {
    headers: { Authorization: `Bearer ${token}`, 'X-Third-Party-Secret': secret, ...headers },
  })
  sent.on('response', resolve)
  sent.on('error', reject)
  sent.end()
  return promise
}
