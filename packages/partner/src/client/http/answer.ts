/** The parts of an answer that callers see. It uses no types of Node, so that the package's own types need none. */
// Imports the whole module: Node before 22.15 has no zstd, and importing a missing name would fail.
import zlib from 'node:zlib'

export interface Answer {
  readonly status: number
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /**
   * The decompressed body, which can be read once. Reading throws if the body is cut, and throws the reason of the
   * signal.
   */
  readonly body: AsyncIterable<Uint8Array>
  /** By name in lower case; known once the body has been read. */
  trailers(): Readonly<Record<string, string | undefined>>
  /** Bytes of the body that have arrived, counted before decompression. */
  wireBytes(): number
  /** The whole body. It is compared with the trailer X-Content-SHA256 if that came. */
  text(): Promise<string>
  json(): Promise<unknown>
  /** Closes the connection without reading the rest of the body. */
  discard(): void
}

export type Encoding = 'identity' | 'gzip' | 'zstd'

/** The best compression that this runtime can read. */
export function bestEncoding(): Encoding {
  return typeof zlib.createZstdDecompress === 'function' ? 'zstd' : 'gzip'
}

/** The facts about an answer that errors contain. */
export const answerFacts = ({ status, headers }: Answer) => ({ status, requestId: headers['x-request-id'] })
