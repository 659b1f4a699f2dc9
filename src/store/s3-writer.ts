/**
 * One object on its way to S3, in parts. The package's own putObject takes 528 MB parts for a stream of unknown
 * length, and resumes an upload that someone else began; hence explicit parts.
 *
 * A part is copied into one of a few buffers and sent when it is full, while the next one fills. Over http the
 * signature of a request covers the SHA-256 of its body; over https the client leaves that out, and Content-MD5 takes
 * its place. Either way the server refuses a part that arrives damaged.
 *
 * That SHA-256 takes 0.27 s of processor for 390 MB, here and again at the server. Unsigned parts with a CRC-32 would
 * spare most of both, but over http nothing would vouch for the content then, and not every server knows that header.
 */
import { hash } from 'node:crypto'
import type { Client } from 'minio'
import { limits } from '../config.ts'
import { asStoreError, type RetryPolicy, saysAbsent, withRetries } from './s3-requests.ts'
import { type ObjectWriter, StoreError } from './store.ts'

export interface Upload {
  client: Client
  bucket: string
  /** Prefix of the store included. */
  name: string
  uploadId: string
  retryPolicy: RetryPolicy
  /** Cuts the requests of `client` off. */
  cut: AbortController
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
  #discarded: Promise<void> = Promise.resolve()
  /** What is on its way may end, but is not tried again. */
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
    if (this.#state === 'completed') return
    this.#giveUp.abort()
    // It cleans up behind its own failure, and where it succeeds it was first.
    await this.#completion
    if (this.#isCompleted()) return
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
    const { client, bucket, name, uploadId, retryPolicy } = this.#upload
    const etags = this.#etags.toSorted((one, other) => one.part - other.part)
    let tries = 0
    await withRetries(
      `Joining the parts of ${name}`,
      retryPolicy,
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
      this.#giveUp.signal,
    )
  }

  async #checkSize(bytes: number): Promise<void> {
    const { client, bucket, name, retryPolicy } = this.#upload
    const { size } = await withRetries(
      `Checking ${name}`,
      retryPolicy,
      () => client.statObject(bucket, name),
      this.#giveUp.signal,
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
    const { client, bucket, name, uploadId, retryPolicy } = this.#upload
    const headers: Record<string, string> = client.enableSHA256
      ? {}
      : { 'content-md5': hash('md5', bytes, 'base64') }
    const { etag } = await withRetries(
      `Sending part ${part} of ${name}`,
      retryPolicy,
      () =>
        client.uploadPart(
          { bucketName: bucket, objectName: name, uploadID: uploadId, partNumber: part, headers },
          bytes,
        ),
      this.#giveUp.signal,
    )
    this.#etags.push({ part, etag })
  }

  /**
   * Parts on their way are let end, and cut off only where that takes long: a part that the server is still receiving
   * when the upload is aborted can bring the upload back.
   */
  async #land(): Promise<void> {
    const timer = setTimeout(() => this.#upload.cut.abort(), limits.storeLandingMs)
    await Promise.all(this.#flights)
    clearTimeout(timer)
  }

  #checkOpen(): void {
    this.#checkAlive()
    if (this.#state !== 'open')
      throw new StoreError(`${this.#upload.name} was completed before`, { retryable: false })
  }

  #checkAlive(): void {
    if (this.#failure) throw this.#failure
    if (this.#state === 'aborted')
      throw new StoreError(`${this.#upload.name} was aborted`, { retryable: false })
  }

  #isCompleted(): boolean {
    return this.#state === 'completed'
  }

  /** Whoever asks second waits for the first: an export that is told as lost has left nothing. */
  #discard(): Promise<void> {
    if (this.#state !== 'aborted') {
      const mayBeThere = this.#state === 'completing'
      this.#state = 'aborted'
      this.#giveUp.abort()
      this.#discarded = this.#removeUpload(mayBeThere)
    }
    return this.#discarded
  }

  /** Whatever the server holds of this object, the object included: a lost answer may hide that it was completed. */
  async #removeUpload(mayBeThere: boolean): Promise<void> {
    await this.#land()
    const { store, bucket, name, uploadId } = this.#upload
    // Nobody waits half a minute for tidying up that the sweep does too.
    const retryPolicy = { ...this.#upload.retryPolicy, tries: Math.min(this.#upload.retryPolicy.tries, 4) }
    const quietly = (doing: string, run: () => Promise<void>) =>
      withRetries(doing, retryPolicy, run).catch(() => {})
    await quietly(`Aborting ${name}`, async () => {
      await store.abortMultipartUpload(bucket, name, uploadId).catch((error) => {
        if (!saysAbsent(error)) throw error
      })
      const { uploads } = await store.listIncompleteUploadsQuery(bucket, name, '', '', '')
      if (uploads.some((upload) => upload.uploadId === uploadId)) throw new Error('the upload is still there')
    })
    if (mayBeThere) await quietly(`Removing ${name}`, () => store.removeObject(bucket, name))
  }
}
