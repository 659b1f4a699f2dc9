import { Buffer } from 'node:buffer'
import type { BufferOf } from './file-options.ts'

const encoder = new TextEncoder()

/**
 * Texts as UTF-8, in chunks that are as full as whole texts make them; a text that needs more than a chunk gets one of
 * its own. Where chunks end depends on the texts alone.
 */
export async function* packTexts(
  texts: AsyncIterable<string>,
  chunkBytes: number,
  buffer: BufferOf,
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
      out = buffer(Math.max(chunkBytes, bytes))
      at = 0
    }
    at += encoder.encodeInto(text, out.subarray(at)).written
  }
  if (out && at > 0) yield out.subarray(0, at)
}
