import { Buffer } from 'node:buffer'
import type { ChunkBuffer } from '../chunk-buffer.ts'

const encoder = new TextEncoder()

/**
 * Encodes texts as UTF-8 and packs as many whole texts as fit into each chunk; a text larger than a chunk gets one of
 * its own. Where chunks end depends only on the texts.
 */
export async function* packTexts(
  texts: AsyncIterable<string>,
  buffer: ChunkBuffer,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let out: Uint8Array<ArrayBuffer> | undefined
  let at = 0
  for await (const text of texts) {
    const bytes = Buffer.byteLength(text)
    if (out && at + bytes > out.length) {
      yield out.subarray(0, at)
      out = undefined
    }
    if (!out) {
      out = buffer(bytes)
      at = 0
    }
    at += encoder.encodeInto(text, out.subarray(at)).written
  }
  if (out && at > 0) yield out.subarray(0, at)
}
