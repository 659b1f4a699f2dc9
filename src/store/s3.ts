/**
 * Stores objects in a bucket of an S3 server, all under one prefix: other objects in the bucket are never listed, swept
 * or removed. The bucket is created if it is missing and the credentials allow it.
 */

import type { Client } from 'minio'
import type { StoreTiming } from '../timing.ts'
import { attachment } from './attachment.ts'
import { asStoreError, createClient, type S3Settings, saysAbsent, withRetries } from './s3-requests.ts'
import { S3Writer } from './s3-writer.ts'
import { checkKey, type ObjectStore, type ObjectWriter } from './store.ts'

const prefix = 'grandlivre/'

/** Most objects that S3 servers list per page. */
const listPageMax = 1000

export class S3Store implements ObjectStore {
  readonly #settings: S3Settings
  readonly #timing: StoreTiming
  readonly #client: Client
  /** Signs addresses for the host that partners see. Never connects. */
  readonly #publicClient: Client

  constructor(settings: S3Settings, timing: StoreTiming) {
    this.#settings = settings
    this.#timing = timing
    this.#client = createClient(settings, settings.endpoint, timing)
    this.#publicClient = createClient(settings, settings.publicEndpoint, timing)
  }

  async create(key: string, contentType: string): Promise<ObjectWriter> {
    checkKey(key)
    const { bucket, endpoint } = this.#settings
    const name = prefix + key
    // Each writer has a client of its own on the shared connections: aborting ends its requests and no others.
    const cut = new AbortController()
    const client = createClient(this.#settings, endpoint, this.#timing, cut.signal)
    const initiate = () => client.initiateNewMultipartUpload(bucket, name, { 'content-type': contentType })
    const uploadId = await withRetries(`Beginning ${name}`, this.#timing, async () => {
      try {
        return await initiate()
      } catch (error) {
        if (!saysAbsent(error)) throw error
        await this.#makeBucket()
        return initiate()
      }
    })
    return new S3Writer({
      client,
      bucket,
      name,
      uploadId,
      timing: this.#timing,
      cut,
      store: this.#client,
    })
  }

  signedUrl(key: string, fileName: string, seconds: number): Promise<string> {
    checkKey(key)
    return this.#publicClient.presignedGetObject(this.#settings.bucket, prefix + key, seconds, {
      'response-content-disposition': attachment(fileName),
    })
  }

  async remove(key: string): Promise<void> {
    checkKey(key)
    await withRetries(`Removing ${key}`, this.#timing, async () => {
      await this.#client.removeObject(this.#settings.bucket, prefix + key).catch(unlessAbsent)
    })
  }

  async sweep(before: Date): Promise<number> {
    return this.#abortUploads(({ initiated }) => initiated < before)
  }

  async clear(folder: string, isLeft: (key: string) => boolean): Promise<void> {
    checkKey(folder)
    const inFolder = `${prefix}${folder}/`
    // Unfinished uploads come first: one that completes just before its removal is then found among the complete
    // objects.
    await this.#abortUploads(({ key }) => key.startsWith(inFolder) && isLeft(key.slice(prefix.length)))
    for await (const { name } of this.#objects(inFolder)) {
      const key = name.slice(prefix.length)
      if (isLeft(key)) await this.remove(key)
    }
  }

  /**
   * Aborts unfinished uploads. MinIO lists them only without a prefix, and only if they began after its own start; it
   * removes all others itself after a day.
   * @returns how many were aborted
   */
  async #abortUploads(isLeft: (upload: { key: string; initiated: Date }) => boolean): Promise<number> {
    const { bucket } = this.#settings
    const left: { key: string; uploadId: string }[] = []
    let keyMarker = ''
    let uploadIdMarker = ''
    do {
      const page = await withRetries('Listing unfinished uploads', this.#timing, () =>
        this.#client.listIncompleteUploadsQuery(bucket, '', keyMarker, uploadIdMarker, ''),
      ).catch(unlessAbsent)
      if (!page) break
      for (const { key, uploadId, initiated } of page.uploads)
        if (key.startsWith(prefix) && isLeft({ key, initiated })) left.push({ key, uploadId })
      keyMarker = page.isTruncated ? page.nextKeyMarker : ''
      uploadIdMarker = page.nextUploadIdMarker
    } while (keyMarker !== '')
    for (const { key, uploadId } of left)
      await withRetries(`Aborting ${key}`, this.#timing, async () => {
        await this.#client.abortMultipartUpload(bucket, key, uploadId).catch(unlessAbsent)
      })
    return left.length
  }

  async *listObjects(before: Date): AsyncIterable<{ key: string; at: Date }> {
    for await (const { name, at } of this.#objects(prefix))
      if (at < before) yield { key: name.slice(prefix.length), at }
  }

  /** Lists objects whose names begin with `namePrefix`. */
  async *#objects(namePrefix: string): AsyncGenerator<{ name: string; at: Date }> {
    for (let after = ''; ; ) {
      const from = after
      const listPage = () => this.#listPage(namePrefix, from)
      const page = await withRetries('Listing the stored files', this.#timing, listPage)
      yield* page
      if (page.length < listPageMax) return
      after = page.at(-1)!.name
    }
  }

  /**
   * Lists one page, with retries: the package does not retry its listings, and a sweep often runs just after idle
   * connections were closed.
   */
  async #listPage(namePrefix: string, after: string): Promise<{ name: string; at: Date }[]> {
    const page: { name: string; at: Date }[] = []
    try {
      for await (const { name, lastModified } of this.#client.listObjectsV2(
        this.#settings.bucket,
        namePrefix,
        true,
        after,
      )) {
        if (name !== undefined) page.push({ name, at: lastModified })
        if (page.length === listPageMax) break
      }
    } catch (error) {
      if (!saysAbsent(error)) throw error
    }
    return page
  }

  async check(): Promise<void> {
    const { bucket, endpoint } = this.#settings
    try {
      if (!(await this.#client.bucketExists(bucket))) await this.#makeBucket()
    } catch (error) {
      throw asStoreError(error, `Reaching the bucket ${bucket} at ${endpoint}`)
    }
  }

  async #makeBucket(): Promise<void> {
    const { bucket, region } = this.#settings
    try {
      await this.#client.makeBucket(bucket, region)
    } catch (error) {
      // The error is ignored if another process created the bucket first.
      if (!(await this.#client.bucketExists(bucket))) throw error
    }
  }
}

function unlessAbsent(error: unknown): undefined {
  if (!saysAbsent(error)) throw error
}
