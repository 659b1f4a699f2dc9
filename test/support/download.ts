/** Exports over HTTP: their raw bytes and trailers, and the error of a broken transfer. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { expect } from 'vitest'

export interface Download {
  status: number
  headers: IncomingHttpHeaders
  trailers: Record<string, string | undefined>
  /** The bytes as received: compressed if the response was compressed. */
  bytes: Buffer
  /** The decoded body as text. */
  text: string
  /** The body as JSON, for errors and small exports. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads into answers of any shape
  json: any
  /** SHA-256 of the decoded body. */
  sha256: string
}

/** Reads the whole response. Rejects with the error of a broken transfer. */
export async function download(
  url: string,
  headers: Record<string, string | string[]>,
  method = 'GET',
): Promise<Download> {
  const message = await open(url, headers, method)
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk)
  const bytes = Buffer.concat(chunks)
  const body = decoded(bytes, message.headers['content-encoding'])
  const text = body.toString('utf8')
  return {
    status: message.statusCode!,
    headers: message.headers,
    trailers: message.trailers,
    bytes,
    text,
    get json() {
      return JSON.parse(text)
    },
    sha256: createHash('sha256').update(body).digest('hex'),
  }
}

/** Returns the response as soon as its headers arrive, with its body unread. */
export async function open(
  url: string,
  headers: Record<string, string | string[]>,
  method = 'GET',
): Promise<IncomingMessage> {
  const outgoing = request(url, { method, headers, agent: new Agent({ keepAlive: false }) })
  outgoing.end()
  const [message] = await once(outgoing, 'response')
  return message
}

type Query = Record<string, string | string[] | undefined>

/** The URL of a movements export, as `madUrl` makes it. */
export const movementsUrl = (serviceUrl: string, query: Query) => madUrl(serviceUrl, 'movements', query)

/** The URL of a route below /mad. Query values are encoded; arrays become repeated parameters. */
export function madUrl(serviceUrl: string, route: string, query: Query): string {
  const url = new URL(`/api/v1/mad/${route}`, serviceUrl)
  for (const [name, value] of Object.entries({ version: '1.0.0', ...query }))
    for (const single of [value ?? []].flat()) url.searchParams.append(name, single)
  return url.href
}

/** Status and code of an answer, and the parameters that its error names. */
export function outcomeOf({ status, json: { error } }: Download): unknown[] {
  const issues: { parameter: string }[] = error?.details.issues ?? []
  return [status, error?.code, ...issues.map(({ parameter }) => parameter)]
}

function decoded(bytes: Buffer, encoding: string | undefined): Buffer {
  if (bytes.length === 0) return bytes
  if (encoding === 'gzip') return gunzipSync(bytes)
  return encoding === 'zstd' ? zstdDecompressSync(bytes) : bytes
}

export interface SlowReader {
  message: IncomingMessage
  /** Bytes read so far. */
  bytes: number
  /** Reads this many bytes, or to the end, and feeds them to the hash. */
  read(bytes: number): Promise<void>
  digest(): string
}

/** Starts an export whose bytes are read when the test says so. */
export async function slowReader(url: string, headers: Record<string, string>): Promise<SlowReader> {
  const message = await open(url, headers)
  expect(message.statusCode).toBe(200)
  const hash = createHash('sha256')
  const reader: SlowReader = {
    message,
    bytes: 0,
    digest: () => hash.digest('hex'),
    async read(bytes) {
      const target = reader.bytes + bytes
      while (reader.bytes < target && !message.readableEnded) {
        const chunk = message.read() as Buffer | null
        if (chunk) {
          hash.update(chunk)
          reader.bytes += chunk.length
        } else {
          const controller = new AbortController()
          const { signal } = controller
          await Promise.race(['readable', 'end'].map((name) => once(message, name, { signal }))).finally(() =>
            controller.abort(),
          )
        }
      }
    },
  }
  return reader
}
