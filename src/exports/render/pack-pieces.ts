import { Buffer } from 'node:buffer'
import type { ChunkBuffer } from '../chunk-buffer.ts'

const encoder = new TextEncoder()

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
    const bytes = Buffer.byteLength(piece)
    if (at + bytes > out.length) {
      if (at > 0) yield out.subarray(0, at)
      out = buffer(bytes)
      at = 0
    }
    if (typeof piece === 'string') encoder.encodeInto(piece, out.subarray(at))
    else out.set(piece, at)
    at += bytes
  }
  if (at > 0) yield out.subarray(0, at)
}
