/** What callers see of an answer. It names no type of Node, so that the types of the package need none. */
// The whole module: Node before 22.15 has no zstd, and a named import of what is missing fails as a whole.
import zlib from 'node:zlib'

export interface Answer {
  readonly status: number
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The decompressed body, to be read once. It throws where it is cut, and the reason of the signal. */
  readonly body: AsyncIterable<Uint8Array>
  /** By lower-case name; known when the body has been read. */
  trailers(): Readonly<Record<string, string | undefined>>
  /** Bytes of the body that have arrived, before decompression. */
  wireBytes(): number
  /** The whole body, compared with the trailer X-Content-SHA256 if there is one. */
  text(): Promise<string>
  json(): Promise<unknown>
  /** Closes the connection; the rest of the body is not read. */
  discard(): void
}

export type Encoding = 'identity' | 'gzip' | 'zstd'

/** The best encoding that this runtime can read. */
export function bestEncoding(): Encoding {
  return typeof zlib.createZstdDecompress === 'function' ? 'zstd' : 'gzip'
}

/** What errors say of an answer. */
export const answerFacts = ({ status, headers }: Answer) => ({ status, requestId: headers['x-request-id'] })
