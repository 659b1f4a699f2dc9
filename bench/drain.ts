/**
 * The leanest client: reads responses from its socket into one buffer, over and over, and counts.
 *
 * The client shares the machine with what is measured. node:http spent 0.55 s of processor on 517 MB, half as
 * much as the service itself; this spends what a client in C would, and the reader of the floor does no more. It
 * looks at the lines of HTTP only: the head, the sizes of chunks, the trailers. Bodies are skipped.
 */
import { connect, type Socket } from 'node:net'

/**
 * All connections share it, as each reads and counts before the next one does. The size is that of what the
 * sockets of the service write at most.
 */
const received = Buffer.alloc(1024 * 1024)

export interface Drained {
  /** Of the body as sent: compressed if it is, without the sizes of its chunks. */
  bytes: number
  /** Time to the first byte of the body. */
  firstByteMs: number
  ms: number
  /** Rows according to the trailer; null without one. */
  rows: number | null
  /** Hexadecimal, according to the trailer; null without one. */
  sha256: string | null
}

/** The answer is not a 200. */
export class Refused extends Error {
  readonly status: number

  constructor(url: string, status: number) {
    super(`${url} answered ${status}`)
    this.status = status
  }
}

/**
 * Reads one response on a connection of its own.
 * @param onFirstByte called once, when the body starts
 * @param body of a POST, in JSON; none: a GET
 * @throws {Refused} if the response is not a 200
 * @throws {Error} if it is not chunked, or breaks off
 */
export async function drain(
  url: string,
  headers: Record<string, string>,
  onFirstByte?: () => void,
  body?: string,
): Promise<Drained> {
  const connection = new Connection(new URL(url))
  try {
    return await connection.send(url, headers, onFirstByte, body)
  } finally {
    connection.close()
  }
}

/** A connection that stays open for the next request: one at a time. */
export class Connection {
  readonly #socket: Socket
  readonly #host: string
  #reading: Reading | undefined

  constructor({ hostname, port, host }: URL) {
    this.#host = host
    const callback = (count: number): boolean => {
      this.#reading?.take(received.subarray(0, count))
      return true
    }
    this.#socket = connect({ host: hostname, port: Number(port), onread: { buffer: received, callback } })
    this.#socket.on('error', (error) => this.#reading?.fail(error))
    this.#socket.on('close', () => this.#reading?.breakOff())
  }

  /** As `drain`. After an error the connection is of no more use. */
  async send(
    url: string,
    headers: Record<string, string>,
    onFirstByte?: () => void,
    body?: string,
  ): Promise<Drained> {
    if (this.#socket.destroyed) throw new Error(`The connection to ${this.#host} is closed`)
    this.#reading = new Reading(url, onFirstByte)
    const { pathname, search } = new URL(url)
    const ofBody =
      body === undefined
        ? {}
        : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
    const lines = Object.entries({ Host: this.#host, ...headers, ...ofBody }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    )
    const method = body === undefined ? 'GET' : 'POST'
    this.#socket.write(`${method} ${pathname}${search} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`)
    try {
      return await this.#reading.ended
    } finally {
      this.#reading = undefined
    }
  }

  close(): void {
    this.#socket.destroy()
  }
}

/** One response. */
class Reading {
  readonly #url: string
  readonly #onFirstByte: (() => void) | undefined
  readonly #started = performance.now()
  readonly #ended = Promise.withResolvers<Drained>()
  #expects: 'status' | 'head' | 'size' | 'trailers' = 'status'
  /** The start of a line whose end has not arrived. */
  #line = ''
  /** Bytes of the chunk, and the line break after it, that are still to come. */
  #left = 0
  #isChunked = false
  #firstByteMs = 0
  #bytes = 0
  #trailers = new Map<string, string>()

  constructor(url: string, onFirstByte: (() => void) | undefined) {
    this.#url = url
    this.#onFirstByte = onFirstByte
  }

  get ended(): Promise<Drained> {
    return this.#ended.promise
  }

  take(bytes: Buffer): void {
    let at = 0
    while (at < bytes.length) {
      const skipped = Math.min(this.#left, bytes.length - at)
      this.#left -= skipped
      at += skipped
      if (at === bytes.length) return
      const end = bytes.indexOf('\n', at)
      this.#line += bytes.toString('latin1', at, end < 0 ? bytes.length : end)
      if (end < 0) return
      at = end + 1
      const line = this.#line.trimEnd()
      this.#line = ''
      this.#takeLine(line)
    }
  }

  #takeLine(line: string): void {
    if (this.#expects === 'status') {
      const status = Number(line.split(' ')[1])
      if (status !== 200) this.fail(new Refused(this.#url, status))
      this.#expects = 'head'
    } else if (this.#expects === 'head') {
      if (/^transfer-encoding: *chunked$/i.test(line)) this.#isChunked = true
      if (line !== '') return
      if (!this.#isChunked) this.fail(new Error(`The answer of ${this.#url} is not chunked`))
      this.#expects = 'size'
    } else if (this.#expects === 'size') this.#takeSize(Number.parseInt(line, 16))
    else if (line === '') this.#end()
    else this.#trailers.set(line.split(':', 1)[0]!.toLowerCase(), line.slice(line.indexOf(':') + 1).trim())
  }

  #takeSize(size: number): void {
    if (size === 0) {
      this.#expects = 'trailers'
      return
    }
    if (this.#bytes === 0) {
      this.#firstByteMs = performance.now() - this.#started
      this.#onFirstByte?.()
    }
    this.#bytes += size
    this.#left = size + '\r\n'.length
  }

  #end(): void {
    const rows = this.#trailers.get('x-row-count')
    this.#ended.resolve({
      bytes: this.#bytes,
      firstByteMs: this.#firstByteMs,
      ms: performance.now() - this.#started,
      rows: rows === undefined ? null : Number(rows),
      sha256: this.#trailers.get('x-content-sha256') ?? null,
    })
  }

  breakOff(): void {
    this.fail(new Error(`The answer of ${this.#url} broke off after ${this.#bytes} bytes`))
  }

  /** Without effect once it has ended. */
  fail(error: Error): void {
    this.#ended.reject(error)
  }
}
