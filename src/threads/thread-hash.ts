import type { MessagePort } from 'node:worker_threads'
import { limits } from '../config.ts'
import type { FromThread } from './channel.ts'

interface Digest {
  sha256: string
}

/**
 * Computes the SHA-256 of chunks that are used in this thread. A hash thread (hash-thread.ts) gets each chunk after its
 * use, and returns its buffer for another chunk.
 */
export class ThreadHash {
  readonly #port: MessagePort
  readonly #buffers: ArrayBuffer[] = []
  #bytesAway = 0
  #sha256: string | undefined
  #failure: Error | undefined
  #wake: (() => void) | undefined

  /** @param port its other end belongs to a hash thread */
  constructor(port: MessagePort) {
    this.#port = port
    port.on('message', (message: Extract<FromThread<never, Digest>, { kind: 'chunk' | 'end' }>) => {
      if (message.kind === 'chunk') this.#takeBack(message.bytes)
      else this.#sha256 = message.summary.sha256
      this.#wake?.()
    })
    port.on('close', () => {
      this.#failure = new Error('the hash thread ended before the digest')
      this.#wake?.()
    })
  }

  /** Returns a buffer for the next chunk: a returned or a new one, of at least the usual size. */
  buffer(bytesNeeded = 0): Uint8Array<ArrayBuffer> {
    if (bytesNeeded > limits.chunkBytes) return new Uint8Array(bytesNeeded)
    const returned = this.#buffers.pop()
    return returned ? new Uint8Array(returned) : new Uint8Array(limits.chunkBytes)
  }

  /**
   * Transfers a chunk with its buffer, so the caller must have finished with it. Resolves when the hash thread, usually
   * the faster of the two, has less than a window to do. A chunk whose buffer does not have the usual size is copied
   * instead: it may be a constant, or share its memory.
   */
  async update(chunk: Uint8Array<ArrayBuffer>): Promise<void> {
    let bytes = chunk
    if (chunk.buffer.byteLength < limits.chunkBytes) {
      bytes = this.buffer().subarray(0, chunk.length)
      bytes.set(chunk)
    }
    this.#bytesAway += bytes.length
    this.#post({ kind: 'chunk', bytes }, [bytes.buffer])
    await this.#until(() => this.#bytesAway < limits.channelWindowBytes)
  }

  /** The digest of all chunks. Call it once, after the last chunk. */
  async digest(_encoding: 'hex'): Promise<string> {
    this.#post({ kind: 'end', summary: {}, buffers: [] })
    await this.#until(() => this.#sha256 !== undefined)
    return this.#sha256!
  }

  close(): void {
    this.#port.close()
  }

  #post(message: FromThread<never, object>, transfer: ArrayBuffer[] = []): void {
    this.#port.postMessage(message, transfer)
  }

  async #until(reached: () => boolean): Promise<void> {
    while (!reached()) {
      if (this.#failure) throw this.#failure
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /**
   * Keeps a returned buffer, except one of many megabytes, for a single large item: it is left to the garbage
   * collector.
   */
  #takeBack({ byteLength, buffer }: Uint8Array): void {
    this.#bytesAway -= byteLength
    if (buffer.byteLength === limits.chunkBytes) this.#buffers.push(buffer as ArrayBuffer)
  }
}
