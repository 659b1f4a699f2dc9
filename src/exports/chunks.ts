import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { constants, createGzip, createZstdCompress, type Gzip, type ZstdCompress } from 'node:zlib'
import { limits } from '../config.ts'
import type { Compression } from '../formats/file-formats.ts'

/**
 * The bytes of an answer or a file. Each chunk is valid until the next is asked for, or longer if its `ChunkBuffer` does
 * not reuse the buffer at once.
 */
export type Chunks = AsyncGenerator<Uint8Array<ArrayBuffer>>

/**
 * Returns the buffer of the next chunk; called once for each chunk. The length of the buffer is the maximum size of the
 * chunk: the usual one, or more if the first item of the chunk needs more.
 */
export type ChunkBuffer = (bytesNeeded?: number) => Uint8Array<ArrayBuffer>

/**
 * One buffer for all chunks. Only for use where each chunk is used up before the next is rendered. After a large item
 * the buffer keeps that size, and later chunks may be as large.
 */
export function sameChunkBuffer(): ChunkBuffer {
  let buffer = new Uint8Array(limits.chunkBytes)
  return (bytesNeeded = 0) => {
    if (buffer.length < bytesNeeded) buffer = new Uint8Array(bytesNeeded)
    return buffer
  }
}

/**
 * Two buffers in turn. Only for use where each chunk is used up before the chunk after the next is rendered. A second call for
 * the same chunk would return the buffer of the chunk before it, which is still being written.
 */
export function twoChunkBuffers(): ChunkBuffer {
  const buffers = [sameChunkBuffer(), sameChunkBuffer()] as const
  let next: 0 | 1 = 0
  return (bytesNeeded) => {
    next = next === 0 ? 1 : 0
    return buffers[next](bytesNeeded)
  }
}

/**
 * Uses each chunk while the next is rendered: other threads compress, write and hash it. A JSON file in zstd took 1.4
 * times as long when its chunks were rendered and used in turn.
 */
export async function eachBesideNext<Chunk>(
  chunks: AsyncIterable<Chunk>,
  use: (chunk: Chunk) => Promise<void>,
): Promise<void> {
  let used = Promise.resolve()
  for await (const chunk of chunks) {
    await used
    used = use(chunk)
    // The next await reports the error, unless rendering fails first.
    used.catch(() => {})
  }
  await used
}

/** Size of a compressor's output pieces. */
const pieceBytes = 64 * 1024

/**
 * Compresses chunks, in libuv's threads. The same content gives the same bytes, however it is cut into chunks.
 *
 * Level 1 of both: 890 MB/s (zstd) and 450 MB/s (gzip) on ledgers; gzip 6 makes an export 3.7 times slower.
 */
function compressor(compression: Compression): Gzip | ZstdCompress {
  // Any chunk fills the compressor, so it drains only when the chunk is compressed. Otherwise small chunks would queue
  // here, and the next one would overwrite them in the same buffer.
  const options = { chunkSize: pieceBytes, writableHighWaterMark: 1 }
  return compression === 'gzip'
    ? createGzip({ ...options, level: 1 })
    : createZstdCompress({ ...options, params: { [constants.ZSTD_c_compressionLevel]: 1 } })
}

/**
 * Compresses a body as one frame of zstd or one member of gzip: some readers stop after the first. After the first
 * failure every further call fails with the same error.
 */
export class Compressor {
  readonly #stream: Gzip | ZstdCompress
  /** Settles when every piece is sent, or when sending one has failed. */
  readonly #sent: Promise<void>

  /** @param send takes the compressed pieces */
  constructor(compression: Compression, send: (pieces: AsyncIterable<Uint8Array>) => Promise<void>) {
    this.#stream = compressor(compression)
    this.#sent = pipeline(this.#stream, send)
    // The next write() or end() reports it.
    this.#sent.catch(() => {})
  }

  /** Resolves when the bytes are compressed. Another thread does that, so the caller may render more meanwhile. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.#stream.destroyed) return this.#sent
    // #sent has the cause; the stream only knows that it was destroyed.
    if (!this.#stream.write(bytes)) await once(this.#stream, 'drain').catch(() => this.#sent)
  }

  /** Ends the body. Resolves when every piece is sent. */
  end(): Promise<void> {
    this.#stream.end()
    return this.#sent
  }

  abort(reason: Error): void {
    this.#stream.destroy(reason)
  }
}

/** Compresses a short body. */
export function compressWhole(body: Uint8Array, compression: Compression): Promise<Uint8Array> {
  const compressing = compressor(compression)
  compressing.end(body)
  return buffer(compressing)
}
