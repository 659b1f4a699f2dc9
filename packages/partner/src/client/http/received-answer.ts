/** An answer of node:http. Its body is decompressed and watched for stalls, and its trailers are known at the end. */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { pipeline } from 'node:stream/promises'
import zlib from 'node:zlib'
import { clientError } from '../errors.ts'
import { type Answer, bestEncoding } from './answer.ts'
import { cut, isLost, timedOut } from './connection.ts'

/** Size of the pieces in which a body is decompressed. Few large pieces cost less than many small ones. */
const pieceBytes = 256 * 1024

/** Number of bytes that must arrive within `stallMs`. A slower transfer could go on for days, so it counts as lost. */
const slowestBytes = 1024

export interface Limits {
  /** Milliseconds within which 1 KB of a body must arrive while its reader waits. */
  stallMs: number
  /** Most bytes, after decompression, of a body that is read as a whole. Longer bodies have to be read as streams. */
  wholeBytesMax: number
}

/** @param request its method and address, for errors */
export function receivedAnswer(
  response: IncomingMessage,
  request: string,
  { stallMs, wholeBytesMax }: Limits,
  signal: AbortSignal | undefined,
): Answer {
  const status = response.statusCode ?? 0
  const headers = textsOf(response.headers)
  let wireBytes = 0
  const arrived = received(response, stallMs, signal, (bytes) => {
    wireBytes += bytes
  })
  const body = decoded(response, headers['content-encoding']?.toLowerCase() ?? 'identity', arrived)
  const trailers = () => textsOf(response.trailers ?? {})
  const text = async () => {
    const chunks: Uint8Array[] = []
    let bytes = 0
    for await (const chunk of body) {
      bytes += chunk.length
      if (bytes > wholeBytesMax)
        throw clientError(
          'ANSWER-TOO-LONG',
          `${request} was answered with more than ${wholeBytesMax / 1e6} MB, the limit for an answer that is read ` +
            'whole (wholeBytesMax)',
          { status, requestId: headers['x-request-id'] },
        )
      chunks.push(chunk)
    }
    const whole = Buffer.concat(chunks)
    const sent = trailers()['x-content-sha256']
    if (sent !== undefined && sent !== createHash('sha256').update(whole).digest('hex'))
      throw cut('The body differs from its trailer X-Content-SHA256')
    return whole.toString('utf8')
  }
  return {
    ...{ status, headers, body, trailers, text },
    wireBytes: () => wireBytes,
    json: async () => parseWhole(await text()),
    discard: () => void response.destroy(),
  }
}

/** @param count called with the number of bytes in each chunk */
async function* received(
  response: IncomingMessage,
  stallMs: number,
  signal: AbortSignal | undefined,
  count: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  const chunks = response[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
  let slow: Error | undefined
  // The bytes, and the time spent waiting, since the last whole KB. While the reader is busy with a chunk, no time
  // counts.
  let [bytes, waitedMs] = [0, 0]
  try {
    for (;;) {
      const began = performance.now()
      const timer = setTimeout(
        () => {
          slow = timedOut('Less than 1 KB arrived in', stallMs)
          response.destroy(slow)
        },
        Math.max(1, stallMs - waitedMs),
      )
      const { value, done } = await chunks.next().finally(() => clearTimeout(timer))
      if (done) break
      count(value.length)
      bytes += value.length
      waitedMs += performance.now() - began
      if (bytes >= slowestBytes) [bytes, waitedMs] = [0, 0]
      yield value
      // Chunks that arrived before an abort would still come out after it.
      signal?.throwIfAborted()
    }
    if (!response.complete) throw cut('The connection was closed before the end of the body')
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    const { message } = error as Error
    // Any early end of a body is a loss, even after an alert of TLS.
    throw slow ?? (isLost(error) ? error : cut(message, error))
  } finally {
    if (!response.complete) response.destroy()
  }
}

function decoded(
  response: IncomingMessage,
  encoding: string,
  arrived: AsyncGenerator<Uint8Array>,
): AsyncIterable<Uint8Array> {
  if (encoding === 'identity') return arrived
  // With this flag the decoder also gives out what a cut body contains. The reader proves whether the body is whole.
  if (encoding === 'gzip' || encoding === 'x-gzip') {
    const finishFlush = zlib.constants.Z_SYNC_FLUSH
    return through(zlib.createGunzip({ chunkSize: pieceBytes, finishFlush }), arrived, response)
  }
  if (encoding === 'zstd' && bestEncoding() === 'zstd') {
    const finishFlush = zlib.constants.ZSTD_e_flush
    return through(zlib.createZstdDecompress({ chunkSize: pieceBytes, finishFlush }), arrived, response)
  }
  response.destroy()
  throw clientError(
    'UNEXPECTED-ANSWER',
    `The answer has the Content-Encoding ${encoding}, which was not asked for`,
  )
}

/** Gives out everything that arrived before a cut, then throws the error of the cut. */
async function* through(
  decoder: zlib.Gunzip | zlib.ZstdDecompress,
  arrived: AsyncGenerator<Uint8Array>,
  response: IncomingMessage,
): AsyncGenerator<Uint8Array> {
  let lost: { error: unknown } | undefined
  async function* untilLost() {
    try {
      yield* arrived
    } catch (error) {
      lost = { error }
    }
  }
  // The loop below gets the error from the decoder.
  const feeding = pipeline(untilLost, decoder).catch(() => {})
  try {
    for await (const chunk of decoder) yield chunk as Uint8Array
  } catch (cause) {
    // A body that is merely cut decompresses without an error. This body is damaged, and the bytes that came out before
    // may be wrong, too.
    throw clientError('NOT-PROVEN', 'The compressed body was damaged on the way', { cause })
  } finally {
    decoder.destroy()
    if (!response.complete) response.destroy()
    await feeding
  }
  if (lost) throw lost.error
}

/** @throws {Error} a loss if the text is not JSON: a proxy may have ended the body early, as if it were whole */
export function parseWhole(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw cut('The body is not whole JSON', cause)
  }
}

function textsOf(headers: NodeJS.Dict<string | string[]>): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  )
}
