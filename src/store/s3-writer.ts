/**
 * Uploads one object to S3, in parts. The package's own putObject sends 528 MB parts for a stream of unknown length,
 * and resumes an upload that another writer began. So we send parts explicitly.
 *
 * A part is collected in one of a few buffers and sent when the buffer is full, while the next one fills. Over http the
 * request's signature covers the SHA-256 of its body; over https the client omits that, and Content-MD5 takes its
 * place. Either way the server refuses a part that arrives damaged.
 *
 * That SHA-256 takes 0.27 s of processor for 390 MB, here and again on the server. Unsigned parts with a CRC-32 would
 * save most of both, but over http nothing would authenticate the content then, and not every server supports that
 * header.
 */

import { hash } from 'node:crypto'
import type { Client } from 'minio'
import { limits } from '../config.ts'
import type { StoreTiming } from '../timing.ts'
import { asStoreError, saysAbsent, withRetries } from './s3-requests.ts'
import { type ObjectWriter, StoreError } from './store.ts'

interface Upload {
  client: Client
  bucket: string
  /** Name of the object, with the store's prefix. */
  name: string
  uploadId: string
  timing: StoreTiming
  /** Aborts the requests of `client`. */
  cut: AbortController
  /** A client for cleaning up: it stays usable when `client` is aborted. */
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
  #discarded: Promise<void> = Promise.resolve()
  /** Aborted when the upload is given up: requests in flight may finish, but are not retried. */
  readonly #giveUp = new AbortController()

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
    this.#giveUp.abort()
    // If completion fails, it cleans up after itself. If it succeeds, it counts as earlier than this abort.
    await this.#completion
    if (this.#state !== 'completed') await this.#discard()
  }

  async #complete(bytes: number): Promise<void> {
    try {
      // Every object has at least one part, even an empty one.
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
    const { client, bucket, name, uploadId } = this.#upload
    const etags = this.#etags.toSorted((one, other) => one.part - other.part)
    let tries = 0
    await this.#retried(`Joining the parts of ${name}`, async () => {
      tries += 1
      try {
        await client.completeMultipartUpload(bucket, name, uploadId, etags)
      } catch (error) {
        // An earlier try succeeded but its response was lost: checking the size decides.
        if (tries > 1 && saysAbsent(error)) return
        throw error
      }
    })
  }

  async #checkSize(bytes: number): Promise<void> {
    const { client, bucket, name } = this.#upload
    const { size } = await this.#retried(`Checking ${name}`, () => client.statObject(bucket, name))
    if (size !== bytes)
      throw new StoreError(`${name} arrived with ${size} bytes instead of ${bytes}`, { retryable: true })
  }

  /** Returns a buffer that is not part of a request in flight. Waits for one if all are in use. */
  async #takeBuffer(): Promise<Buffer> {
    if (this.#free.length === 0 && this.#buffers < limits.storePartsInFlight) {
      this.#buffers += 1
      return Buffer.allocUnsafeSlow(limits.storePartBytes)
    }
    while (this.#free.length === 0) await Promise.race(this.#flights)
    if (this.#failure) await this.#discard()
    this.#checkAlive()
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
        this.#giveUp.abort()
      })
      .finally(() => {
        this.#flights.delete(flight)
        this.#free.push(buffer)
      })
    this.#flights.add(flight)
  }

  async #uploadPart(part: number, bytes: Buffer): Promise<void> {
    const { client, bucket, name, uploadId } = this.#upload
    const headers: Record<string, string> = client.enableSHA256
      ? {}
      : { 'content-md5': hash('md5', bytes, 'base64') }
    const place = { bucketName: bucket, objectName: name, uploadID: uploadId, partNumber: part, headers }
    const sending = `Sending part ${part} of ${name}`
    const { etag } = await this.#retried(sending, () => client.uploadPart(place, bytes))
    this.#etags.push({ part, etag })
  }

  /** Runs `run`, with retries until the upload is given up. */
  #retried<Result>(doing: string, run: () => Promise<Result>): Promise<Result> {
    return withRetries(doing, this.#upload.timing, run, this.#giveUp.signal)
  }

  /**
   * Lets parts in flight finish, and aborts them only if that takes long: a part that the server is still receiving
   * when the upload is aborted can bring the upload back.
   */
  async #land(): Promise<void> {
    const timer = setTimeout(() => this.#upload.cut.abort(), this.#upload.timing.landingMs)
    await Promise.all(this.#flights)
    clearTimeout(timer)
  }

  #checkOpen(): void {
    this.#checkAlive()
    if (this.#state !== 'open')
      throw new StoreError(`${this.#upload.name} is already completed`, { retryable: false })
  }

  #checkAlive(): void {
    if (this.#failure) throw this.#failure
    if (this.#state === 'aborted')
      throw new StoreError(`${this.#upload.name} was aborted`, { retryable: false })
  }

  /** A second call waits for the first, so that nothing is left of an export when it is reported as lost. */
  #discard(): Promise<void> {
    if (this.#state !== 'aborted') {
      const mayBeThere = this.#state === 'completing'
      this.#state = 'aborted'
      this.#giveUp.abort()
      this.#discarded = this.#removeUpload(mayBeThere)
    }
    return this.#discarded
  }

  /**
   * Removes whatever the server holds of this object, the complete object included: a lost response may hide that it
   * was completed.
   */
  async #removeUpload(mayBeThere: boolean): Promise<void> {
    await this.#land()
    const { store, bucket, name, uploadId } = this.#upload
    // A few tries are enough, without half a minute of waiting: retention cleans up too.
    const timing = { ...this.#upload.timing, tries: Math.min(this.#upload.timing.tries, 4) }
    const quietly = (doing: string, run: () => Promise<void>) =>
      withRetries(doing, timing, run).catch(() => {})
    await quietly(`Aborting ${name}`, async () => {
      await store.abortMultipartUpload(bucket, name, uploadId).catch((error) => {
        if (!saysAbsent(error)) throw error
      })
      const { uploads } = await store.listIncompleteUploadsQuery(bucket, name, '', '', '')
      if (uploads.some((upload) => upload.uploadId === uploadId))
        throw new Error('the server still lists the upload')
    })
    if (mayBeThere) await quietly(`Removing ${name}`, () => store.removeObject(bucket, name))
  }
}
