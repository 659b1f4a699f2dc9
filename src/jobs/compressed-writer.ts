import { strict as assert } from 'node:assert'
import { createHash } from 'node:crypto'
import { Compressor } from '../exports/chunks.ts'
import type { Compression } from '../formats/file-formats.ts'
import type { ObjectWriter } from '../store/store.ts'

/** Compresses what is written to an object of the store. */
export function compressedWriter(object: ObjectWriter, compression: Compression) {
  /**
   * Hashes the compressed bytes, a twentieth of the content. A hash thread would save less time than its messages cost.
   */
  const hash = createHash('sha256')
  let bytes = 0
  let contentBytes = 0
  const compressor = new Compressor(compression, async (pieces) => {
    for await (const piece of pieces) {
      hash.update(piece)
      bytes += piece.length
      await object.write(piece)
    }
  })
  return {
    /** Resolves when the bytes are compressed. Another thread compresses them. */
    write: async (content) => {
      contentBytes += content.length
      await compressor.write(content)
    },
    /** @param expected number of bytes before compression */
    complete: async (expected) => {
      await compressor.end()
      assert(contentBytes === expected.bytes, `${contentBytes} of ${expected.bytes} bytes were written`)
      await object.complete({ bytes })
    },
    abort: async () => {
      compressor.abort(new Error('the file was aborted'))
      await object.abort()
    },
    /** Returns size and hash of the stored object. Call it once, after complete(). */
    stored: () => ({ bytes, sha256: hash.digest('hex') }),
  } satisfies ObjectWriter & Record<'stored', unknown>
}
