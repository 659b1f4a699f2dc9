/**
 * One object on its way to S3, in parts. The package's own putObject takes 528 MB parts for a stream of unknown
 * length, and resumes an upload that someone else began; hence explicit parts.
 *
 * A part is copied into one of a few buffers and sent when it is full, while the next one fills. Over http the
 * signature of a request covers the SHA-256 of its body; over https the client leaves that out, and Content-MD5 takes
 * its place. Either way the server refuses a part that arrives damaged.
 */
import { hash } from 'node:crypto'
import type { Client } from 'minio'
import { limits } from '../config.ts'
import { asStoreError, type Patience, saysAbsent, withRetries } from './s3-requests.ts'
import { type ObjectWriter, StoreError } from './store.ts'

export interface Upload {
  client: Client
  bucket: string
  /** Prefix of the store included. */
  name: string
  uploadId: string
  patience: Patience
  /** Ends the requests of `client`. */
  controller: AbortController
  /** A client that lives on, for cleaning up. */
  store: Client
}

export class S3Writer implements ObjectWriter {
  readonly #upload: Upload
  readonly #flights = new Set<Promise<void>>()
  readonly #free: Buffer[] = []
  #buffers = 0
  #filling: Buffer | undefined
  #filled = 0
  #written = 0
  readonly #etags: { part: number; etag: string }[] = []
  #parts = 0
  #failure: StoreError | undefined
  #state: 'open' | 'completing' | 'completed' | 'aborted' = 'open'
  #completion: Promise<unknown> = Promise.resolve()

  constructor(upload: Upload) {
    this.#upload = upload
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#checkOpen()
    for (let at = 0; at < bytes.length; ) {
      this.#filling ??= await this.#takeBuffer()
      const length = Math.min(bytes.length - at, limits.storePartBytes - this.#filled)
      this.#filling.set(bytes.subarray(at, at + length), this.#filled)
      at += length
      this.#filled += length
      this.#written += length
      if (this.#filled === limits.storePartBytes) this.#sendPart()
    }
  }

  async complete(expected: { bytes: number }): Promise<void> {
    this.#checkOpen()
    this.#state = 'completing'
    const completion = this.#complete(expected.bytes)
    this.#completion = completion.catch(() => {})
    await completion
  }

  async abort(): Promise<void> {
    if (this.#state === 'completed') return
    this.#upload.controller.abort()
    // Completion itself cleans up behind its failure.
    await this.#completion
    await this.#discard()
  }

  async #complete(bytes: number): Promise<void> {
    try {
      // An object has one part at the least, an empty one too.
      if (this.#filled > 0 || this.#parts === 0) {
        this.#filling ??= await this.#takeBuffer()
        this.#sendPart()
      }
      await Promise.all(this.#flights)
      if (this.#failure) throw this.#failure
      if (this.#written !== bytes)
        throw new StoreError(`${this.#upload.name} has ${this.#written} bytes instead of ${bytes}`, {
          retryable: true,
        })
      await this.#join()
      await this.#checkSize(bytes)
      this.#state = 'completed'
    } catch (error) {
      this.#failure = asStoreError(error, `Storing ${this.#upload.name}`)
      await this.#discard()
      throw this.#failure
    }
  }

  async #join(): Promise<void> {
    const { client, bucket, name, uploadId, patience, controller } = this.#upload
    const etags = this.#etags.toSorted((one, other) => one.part - other.part)
    let tries = 0
    await withRetries(
      `Joining the parts of ${name}`,
      patience,
      async () => {
        tries += 1
        try {
          await client.completeMultipartUpload(bucket, name, uploadId, etags)
        } catch (error) {
          // The answer to an earlier try was lost, and that try had succeeded: the check of the size will tell.
          if (tries > 1 && saysAbsent(error)) return
          throw error
        }
      },
      controller.signal,
    )
  }

  async #checkSize(bytes: number): Promise<void> {
    const { client, bucket, name, patience, controller } = this.#upload
    const { size } = await withRetries(
      `Checking ${name}`,
      patience,
      () => client.statObject(bucket, name),
      controller.signal,
    )
    if (size !== bytes)
      throw new StoreError(`${name} arrived with ${size} bytes instead of ${bytes}`, { retryable: true })
  }

  /** A buffer that no part on its way uses; waits for one where all are in use. */
  async #takeBuffer(): Promise<Buffer> {
    if (this.#free.length === 0 && this.#buffers < limits.storePartsInFlight) {
      this.#buffers += 1
      return Buffer.allocUnsafeSlow(limits.storePartBytes)
    }
    while (this.#free.length === 0) await Promise.race(this.#flights)
    if (this.#failure) {
      await this.#discard()
      throw this.#failure
    }
    return this.#free.pop()!
  }

  #sendPart(): void {
    const buffer = this.#filling!
    const bytes = buffer.subarray(0, this.#filled)
    this.#filling = undefined
    this.#filled = 0
    this.#parts += 1
    const flight = this.#uploadPart(this.#parts, bytes)
      .catch((error) => {
        this.#failure ??= asStoreError(error, `Storing ${this.#upload.name}`)
        // The others would be sent for nothing.
        this.#upload.controller.abort()
      })
      .finally(() => {
        this.#flights.delete(flight)
        this.#free.push(buffer)
      })
    this.#flights.add(flight)
  }

  async #uploadPart(part: number, bytes: Buffer): Promise<void> {
    const { client, bucket, name, uploadId, patience, controller } = this.#upload
    const headers: Record<string, string> = client.enableSHA256
      ? {}
      : { 'content-md5': hash('md5', bytes, 'base64') }
    const { etag } = await withRetries(
      `Sending part ${part} of ${name}`,
      patience,
      () =>
        client.uploadPart(
          { bucketName: bucket, objectName: name, uploadID: uploadId, partNumber: part, headers },
          bytes,
        ),
      controller.signal,
    )
    this.#etags.push({ part, etag })
  }

  #checkOpen(): void {
    if (this.#failure) throw this.#failure
    if (this.#state !== 'open')
      throw new StoreError(`${this.#upload.name} was ${this.#state} before`, { retryable: false })
  }

  /** Whatever the server holds of this object, the object included: a lost answer may hide that it was completed. */
  async #discard(): Promise<void> {
    if (this.#state === 'aborted') return
    const mayBeThere = this.#state === 'completing'
    this.#state = 'aborted'
    this.#upload.controller.abort()
    await Promise.all(this.#flights)
    const { store, bucket, name, uploadId, patience } = this.#upload
    const quietly = (doing: string, run: () => Promise<void>) =>
      withRetries(doing, patience, run).catch(() => {})
    await quietly(`Aborting ${name}`, () => store.abortMultipartUpload(bucket, name, uploadId))
    if (mayBeThere) await quietly(`Removing ${name}`, () => store.removeObject(bucket, name))
  }
}
