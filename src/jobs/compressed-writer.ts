import { strict as assert } from 'node:assert'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { pipeline } from 'node:stream/promises'
import { compressor } from '../exports/compressor.ts'
import type { Compression } from '../formats/file-formats.ts'
import type { ObjectWriter } from '../store/store.ts'

/**
 * Writes to an object of the store compressed, as one frame of zstd or one member of gzip: some readers stop after the
 * first. After the first failure every further call fails with the same error, as with any writer.
 */
export class CompressedWriter implements ObjectWriter {
  readonly #object: ObjectWriter
  readonly #compressor: ReturnType<typeof compressor>
  /** Settles when the object has taken every compressed piece, or has failed. */
  readonly #stored: Promise<void>
  readonly #hash = createHash('sha256')
  #bytes = 0
  #contentBytes = 0

  constructor(object: ObjectWriter, compression: Compression) {
    this.#object = object
    this.#compressor = compressor(compression)
    this.#stored = pipeline(this.#compressor, (pieces: AsyncIterable<Uint8Array>) => this.#store(pieces))
    // The next write() or complete() reports it.
    this.#stored.catch(() => {})
  }

  /** Resolves when the bytes are compressed. That is done in another thread, so the caller may hash them meanwhile. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.#compressor.destroyed) return this.#stored
    this.#contentBytes += bytes.length
    // #stored has the cause; the compressor is only told that it was destroyed.
    if (!this.#compressor.write(bytes)) await once(this.#compressor, 'drain').catch(() => this.#stored)
  }

  /** @param expected bytes before compression */
  async complete(expected: { bytes: number }): Promise<void> {
    this.#compressor.end()
    await this.#stored
    assert(
      this.#contentBytes === expected.bytes,
      `${this.#contentBytes} of ${expected.bytes} bytes were written`,
    )
    await this.#object.complete({ bytes: this.#bytes })
  }

  async abort(): Promise<void> {
    this.#compressor.destroy(new Error('the file was aborted'))
    await this.#object.abort()
  }

  /** What the object holds, after complete(); to be called once. */
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
