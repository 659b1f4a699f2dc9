/** The partner of the demo: somebody else's program, which knows the service by HTTP alone. */
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'

export interface Partner {
  /** `http://127.0.0.1:8080` */
  baseUrl: string
  token: string
  secret: string
}

/**
 * Sends a request and gives the answer as soon as its head is there.
 * @param path with its query
 * @throws {Error} for every status but 200 and 304, with what the service says about it
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
  if (answer.statusCode === 200 || answer.statusCode === 304) return answer
  const { error } = (await json(answer)) as { error: { code: string; message: string } }
  throw new Error(`GET ${path} was answered with ${answer.statusCode} ${error.code}: ${error.message}`)
}

/** A small answer, as what it means. */
export async function askForJson<Shape>(partner: Partner, path: string): Promise<Shape> {
  return (await json(await ask(partner, path))) as Shape
}
