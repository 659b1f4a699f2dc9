import { Buffer } from 'node:buffer'
import type { ChunkBuffer } from '../chunk-buffer.ts'

/**
 * Packs as many whole pieces as fit into each chunk, texts as UTF-8; a piece larger than a chunk gets one of its own.
 * Where chunks end depends only on the pieces.
 */
export async function* packPieces(
  pieces: Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>,
  buffer: ChunkBuffer,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let out: Uint8Array<ArrayBuffer> = new Uint8Array()
  let at = 0
  for await (const piece of pieces) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
    if (at + bytes.length > out.length) {
      if (at > 0) yield out.subarray(0, at)
      out = buffer(bytes.length)
      at = 0
    }
    out.set(bytes, at)
    at += bytes.length
  }
  if (at > 0) yield out.subarray(0, at)
}
