/**
 * Where finished files lie: a folder of this machine, or a bucket of an S3 server. Both behave alike and pass one
 * suite (test/support/store-contract.ts).
 *
 * An object appears whole or not at all: until complete() has resolved nobody sees it, and after a failure, an abort
 * or a crash nobody ever will. What a crash leaves behind, clear() removes where its place is known, and sweep() in time.
 */
import { strict as assert } from 'node:assert'
import { hkdfSync } from 'node:crypto'
import type { Config } from '../config.ts'

/** Plain, so that a thread can be given it and open a store of its own. */
export type StoreSettings =
  | {
      kind: 'filesystem'
      /** Absolute. */
      folder: string
      /** Where the service is reached from outside, without a slash at the end. */
      publicUrl: string
      /** Hexadecimal; under it the service signs the addresses of its files. */
      signingKey: string
    }
  | {
      kind: 's3'
      endpoint: string
      /** As downloading partners reach it; the signature covers its host. */
      publicEndpoint: string
      bucket: string
      region: string
      accessKey: string
      secretKey: string
    }

export interface ObjectStore {
  /**
   * Begins an object.
   * @param key see checkKey; fresh for each attempt, as two writers of one key are not told apart
   * @throws {StoreError}
   */
  create(key: string, contentType: string): Promise<ObjectWriter>
  /**
   * Absolute, good for `seconds`; downloads as an attachment of that name. Needs no network. For GET, and from a folder
   * for HEAD too: S3 signs the method, so there a first byte (`Range: bytes=0-0`) tells the size.
   */
  signedUrl(key: string, fileName: string, seconds: number): Promise<string>
  /** No error where the object is not there. */
  remove(key: string): Promise<void>
  /**
   * Removes what lies in a folder of keys, complete or not. A writer that is still at something of it fails, at its
   * complete() at the latest, and makes no object; only one whose parts an S3 server is joining just then may still make
   * it.
   * @param folder as a key without its last segment
   * @param isLeft whether what is stored, or begun, under that key goes
   */
  clear(folder: string, isLeft: (key: string) => boolean): Promise<void>
  /** Removes writes that began before that moment and never ended; gives their number. */
  sweep(before: Date): Promise<number>
  /** Every object that was completed before that moment. */
  list(before: Date): AsyncIterable<{ key: string; at: Date }>
  /** Rejects with what is wrong where the store is out of reach or may not be written to. */
  check(): Promise<void>
}

/** After the first failure every further call fails alike, and nothing is left behind. */
export interface ObjectWriter {
  /** Resolves when there is room for more. The bytes have been copied then and may be used for something else. */
  write(bytes: Uint8Array): Promise<void>
  /** Makes the object visible once the other end holds exactly so many bytes, each part with its checksum. */
  complete(expected: { bytes: number }): Promise<void>
  /** Removes what was written; of no effect after complete(). Never fails: what it cannot reach, sweep() removes. */
  abort(): Promise<void>
}

/**
 * The store could not do what it was asked. `retryable`: the same again may succeed by itself, as the store was out
 * of reach, slow or overloaded. Not so for refused credentials, a missing bucket, and a full disk: a disk is emptied
 * by people, and attempts within minutes would only render the whole file again to fail at the same place.
 */
export class StoreError extends Error {
  readonly retryable: boolean

  constructor(message: string, options: { retryable: boolean; cause?: unknown }) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.name = 'StoreError'
    this.retryable = options.retryable
  }
}

/** Segments of letters, digits, `.`, `_` and `-`, none of them beginning with a dot: safe as a path and as a URL. */
export function isKey(key: string): boolean {
  return key.length <= 512 && /^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/.test(key)
}

/** Keys are made by the service: another shape is a mistake of ours. */
export function checkKey(key: string): void {
  assert(isKey(key), `no key of an object: ${JSON.stringify(key)}`)
}

/**
 * What the configuration says of the store, completed. The key for links is derived from the master key, so that all
 * processes have the same and nothing more needs to be kept.
 * @param publicUrl where the service is reached; PUBLIC_URL, if it is set, goes before it
 */
export function storeSettings(
  config: Pick<Config, 'store' | 'publicUrl'>,
  masterKey: Buffer,
  publicUrl: string,
): StoreSettings {
  if (config.store.kind === 's3') return config.store
  const signingKey = Buffer.from(hkdfSync('sha256', masterKey, '', 'grandlivre: links to files', 32))
  return {
    ...config.store,
    publicUrl: config.publicUrl ?? publicUrl,
    signingKey: signingKey.toString('hex'),
  }
}
