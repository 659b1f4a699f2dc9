/** An answer of node:http: its body decompressed, with an eye on stalls, and its trailers at the end. */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import zlib from 'node:zlib'
import { clientError } from '../errors.ts'
import { type Answer, bestEncoding } from './answer.ts'
import { cut, timedOut } from './connection.ts'

/** Fewer and larger pieces cost less. */
const pieceBytes = 256 * 1024

/** A transfer that brings less while `stallMs` pass may go on for days, and counts as lost. */
const slowestBytes = 1024

export interface Limits {
  /** Milliseconds in which 1 KB of a body has to arrive, while its reader waits. */
  stallMs: number
  /** Bytes of a body that is read whole, after decompression. A longer one is read as a stream. */
  wholeBytesMax: number
}

export class ReceivedAnswer implements Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: AsyncIterable<Uint8Array>
  readonly #response: IncomingMessage
  /** Method and address, for errors. */
  readonly #request: string
  readonly #limits: Limits
  #wireBytes = 0

  constructor(response: IncomingMessage, request: string, limits: Limits, signal: AbortSignal | undefined) {
    this.#response = response
    this.#request = request
    this.#limits = limits
    this.status = response.statusCode ?? 0
    this.headers = textsOf(response.headers)
    this.body = this.#decoded(this.#received(signal))
  }

  trailers(): Readonly<Record<string, string | undefined>> {
    return textsOf(this.#response.trailers ?? {})
  }

  wireBytes(): number {
    return this.#wireBytes
  }

  async text(): Promise<string> {
    const { wholeBytesMax } = this.#limits
    const chunks: Uint8Array[] = []
    let bytes = 0
    for await (const chunk of this.body) {
      bytes += chunk.length
      if (bytes > wholeBytesMax)
        throw clientError(
          'ANSWER-TOO-LONG',
          `${this.#request} was answered with more than ${wholeBytesMax / 1e6} MB, the limit for an answer that is read ` +
            'whole (wholeBytesMax)',
          { status: this.status, requestId: this.headers['x-request-id'] },
        )
      chunks.push(chunk)
    }
    const body = Buffer.concat(chunks)
    const sent = this.trailers()['x-content-sha256']
    if (sent !== undefined && sent !== createHash('sha256').update(body).digest('hex'))
      throw cut('The body differs from its trailer X-Content-SHA256')
    return body.toString('utf8')
  }

  async json(): Promise<unknown> {
    return parseWhole(await this.text())
  }

  discard(): void {
    this.#response.destroy()
  }

  async *#received(signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
    const response = this.#response
    const { stallMs } = this.#limits
    const chunks = response[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
    let slow: Error | undefined
    // Since the last KB. While the reader is busy with a chunk, nothing has to arrive.
    let [bytes, waitedMs] = [0, 0]
    try {
      for (;;) {
        const began = performance.now()
        const timer = setTimeout(() => {
          slow = timedOut('Less than 1 KB arrived in', stallMs)
          response.destroy(slow)
        }, stallMs - waitedMs)
        const { value, done } = await chunks.next().finally(() => clearTimeout(timer))
        if (done) break
        this.#wireBytes += value.length
        bytes += value.length
        waitedMs += performance.now() - began
        if (bytes >= slowestBytes) [bytes, waitedMs] = [0, 0]
        yield value
        // Chunks that have arrived before an abort are still there after it.
        signal?.throwIfAborted()
      }
      if (!response.complete) throw cut('The connection was closed before the end of the body')
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      throw slow ?? error
    } finally {
      if (!response.complete) response.destroy()
    }
  }

  #decoded(received: AsyncGenerator<Uint8Array>): AsyncIterable<Uint8Array> {
    const encoding = this.headers['content-encoding']?.toLowerCase() ?? 'identity'
    if (encoding === 'identity') return received
    // What a cut body holds is given out, too. The proof that it is whole does not come from here.
    if (encoding === 'gzip' || encoding === 'x-gzip') {
      const finishFlush = zlib.constants.Z_SYNC_FLUSH
      return this.#through(zlib.createGunzip({ chunkSize: pieceBytes, finishFlush }), received)
    }
    if (encoding === 'zstd' && bestEncoding() === 'zstd') {
      const finishFlush = zlib.constants.ZSTD_e_flush
      return this.#through(zlib.createZstdDecompress({ chunkSize: pieceBytes, finishFlush }), received)
    }
    this.discard()
    throw clientError(
      'UNEXPECTED-ANSWER',
      `The answer has the Content-Encoding ${encoding}, which was not asked for`,
    )
  }

  /** Gives out everything that arrived before a cut, then its error. */
  async *#through(
    decoder: zlib.Gunzip | zlib.ZstdDecompress,
    received: AsyncGenerator<Uint8Array>,
  ): AsyncGenerator<Uint8Array> {
    let lost: { error: unknown } | undefined
    const feed = async () => {
      try {
        for await (const chunk of received) {
          if (decoder.destroyed) return
          if (!decoder.write(chunk)) await drained(decoder)
        }
      } catch (error) {
        lost = { error }
      }
      decoder.end()
    }
    const feeding = feed()
    try {
      for await (const chunk of decoder) yield chunk as Uint8Array
    } catch (cause) {
      // A body that was only cut decompresses without an error. What came out of this one before may be wrong, too.
      throw clientError('NOT-PROVEN', 'The compressed body was damaged on the way', { cause })
    } finally {
      decoder.destroy()
      if (!this.#response.complete) this.#response.destroy()
      await feeding
    }
    if (lost) throw lost.error
  }
}

/** @throws {Error} a loss, if it is not JSON: a proxy may end a body early and cleanly */
export function parseWhole(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw cut('The body is not whole JSON', cause)
  }
}

/** Also when it is destroyed or has failed. */
function drained(decoder: zlib.Gunzip | zlib.ZstdDecompress): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      for (const event of events) decoder.off(event, end)
      resolve()
    }
    const events = ['drain', 'close', 'error'] as const
    for (const event of events) decoder.on(event, end)
  })
}

function textsOf(headers: NodeJS.Dict<string | string[]>): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  )
}
