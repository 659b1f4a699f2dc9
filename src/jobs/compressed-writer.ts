import { strict as assert } from 'node:assert'
import { createHash } from 'node:crypto'
import { Compressor } from '../exports/chunks.ts'
import type { Compression } from '../formats/file-formats.ts'
import type { ObjectWriter } from '../store/store.ts'

/** Compresses what is written to an object of the store. */
export class CompressedWriter implements ObjectWriter {
  readonly #object: ObjectWriter
  readonly #compressor: Compressor
  /**
   * Hashes the compressed bytes, a twentieth of the content. A hash thread would save less time than its messages cost.
   */
  readonly #hash = createHash('sha256')
  #bytes = 0
  #contentBytes = 0

  constructor(object: ObjectWriter, compression: Compression) {
    this.#object = object
    this.#compressor = new Compressor(compression, (pieces) => this.#store(pieces))
  }

  /** Resolves when the bytes are compressed. Another thread compresses them. */
  async write(bytes: Uint8Array): Promise<void> {
    this.#contentBytes += bytes.length
    await this.#compressor.write(bytes)
  }

  /** @param expected number of bytes before compression */
  async complete(expected: { bytes: number }): Promise<void> {
    await this.#compressor.end()
    assert(
      this.#contentBytes === expected.bytes,
      `${this.#contentBytes} of ${expected.bytes} bytes were written`,
    )
    await this.#object.complete({ bytes: this.#bytes })
  }

  async abort(): Promise<void> {
    this.#compressor.abort(new Error('the file was aborted'))
    await this.#object.abort()
  }

  /** Returns size and hash of the stored object. Call it once, after complete(). */
  stored(): { bytes: number; sha256: string } {
    return { bytes: this.#bytes, sha256: this.#hash.digest('hex') }
  }

  async #store(pieces: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const piece of pieces) {
      this.#hash.update(piece)
      this.#bytes += piece.length
      await this.#object.write(piece)
    }
  }
}
