/** A client on the same machine: reads an answer to its end and keeps nothing of it. */
import { Agent, get, type IncomingHttpHeaders } from 'node:http'

const agent = new Agent({ keepAlive: true })

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  trailers: NodeJS.Dict<string>
  /** Of the body, as they came over the wire. */
  bytes: number
  firstByteMs: number
  ms: number
}

/**
 * @param onBytes sees the body; without it bytes are counted and dropped
 * @throws {Error} where the transfer breaks off
 */
export function request(
  url: string,
  headers: Record<string, string>,
  onBytes?: (chunk: Buffer) => void,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const started = performance.now()
  const sent = get(url, { agent, headers }, (response) => {
    let bytes = 0
    let firstByteMs = 0
    response.on('data', (chunk: Buffer) => {
      if (bytes === 0) firstByteMs = performance.now() - started
      bytes += chunk.length
      onBytes?.(chunk)
    })
    response.on('error', reject)
    response.on('end', () => {
      const ms = performance.now() - started
      if (!response.complete) return reject(new Error(`The answer of ${url} broke off after ${bytes} bytes`))
      const { statusCode: status = 0, headers, trailers } = response
      resolve({ status, headers, trailers, bytes, firstByteMs, ms })
    })
  })
  sent.on('error', reject)
  return promise
}

/** As `request`, and the answer must be a 200. */
export async function download(
  url: string,
  headers: Record<string, string>,
  onBytes?: (chunk: Buffer) => void,
): Promise<Answer> {
  const answer = await request(url, headers, onBytes)
  if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}`)
  return answer
}
