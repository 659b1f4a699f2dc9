/**
 * The store of finished files: a local folder, or a bucket of an S3 server. Both behave alike and pass the same test
 * suite (test/support/store-contract.ts).
 *
 * An object becomes visible completely or not at all: it cannot be seen before complete() resolves, and never after a
 * failure, an abort or a crash. clear() removes what a crash leaves in a known folder; sweep() removes the rest later.
 */
import { strict as assert } from 'node:assert'
import { hkdfSync } from 'node:crypto'
import type { Config, FileStore } from '../config.ts'

type Folder = Extract<FileStore, { kind: 'filesystem' }>

/**
 * What a thread needs to open the store, as plain data. For a local folder, that includes keys to sign the addresses of
 * files.
 */
export type StoreSettings =
  | Exclude<FileStore, Folder>
  | (Folder & {
      /** Public address of the service, without a trailing slash. */
      publicUrl: string
      /** Hexadecimal keys. The address of each file was signed with one of them. */
      signingKeys: readonly string[]
    })

export interface ObjectStore {
  /**
   * Begins an object.
   * @param key see checkKey; new for each attempt, because two writers of one key cannot be distinguished
   * @throws {StoreError}
   */
  create(key: string, contentType: string): Promise<ObjectWriter>
  /**
   * Returns an absolute address, valid for `seconds`, that downloads the object as an attachment with that name. Needs
   * no network. The address is valid for GET. That of a local folder also allows HEAD; S3 signs the method, so there a
   * request for the first byte (`Range: bytes=0-0`) tells the size.
   */
  signedUrl(key: string, fileName: string, seconds: number): Promise<string>
  /** Removes an object. No error if it does not exist. */
  remove(key: string): Promise<void>
  /**
   * Removes objects and unfinished writes in a folder of keys. A writer that is still active there fails, in its
   * complete() at the latest, and creates no object. The exception is a writer whose parts an S3 server is joining at
   * that moment: it may still create the object.
   * @param folder a key without its last segment
   * @param isLeft whether to remove the object or unfinished write with that key
   */
  clear(folder: string, isLeft: (key: string) => boolean): Promise<void>
  /** Removes unfinished writes that began before that moment. @returns how many it removed */
  sweep(before: Date): Promise<number>
  /** Lists the objects that were completed before that moment. */
  listObjects(before: Date): AsyncIterable<{ key: string; at: Date }>
  /** Rejects with the cause if the store is unreachable or not writable. */
  check(): Promise<void>
}

/**
 * Writes one object. After the first failure, every further call fails with the same error, and nothing is left in the
 * store.
 */
export interface ObjectWriter {
  /** Resolves when the writer accepts more. By then it has copied the bytes, so the caller may reuse the buffer. */
  write(bytes: Uint8Array): Promise<void>
  /**
   * Makes the object visible, after checking that the store has exactly this number of bytes, and the checksum of each
   * part.
   */
  complete(expected: { bytes: number }): Promise<void>
  /**
   * Removes what was written. No effect after complete(). Never fails: sweep() removes what abort() could not reach.
   */
  abort(): Promise<void>
}

/**
 * A failed store operation. `retryable`: a retry may succeed, because the store was unreachable, slow or overloaded.
 * Not retryable: refused credentials, a missing bucket, a full disk. A full disk is freed by people; a retry within
 * minutes would render the whole file again and fail at the same point.
 */
export class StoreError extends Error {
  readonly retryable: boolean

  constructor(message: string, options: { retryable: boolean; cause?: unknown }) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.name = 'StoreError'
    this.retryable = options.retryable
  }
}

/**
 * Whether a key consists of segments of letters, digits, `.`, `_` and `-` that do not begin with a dot: safe as a path
 * and in a URL.
 */
export function isKey(key: string): boolean {
  return key.length <= 512 && /^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/.test(key)
}

/** Throws if a key is malformed. The service makes all keys itself, so that is a bug. */
export function checkKey(key: string): void {
  assert(isKey(key), `not an object key: ${JSON.stringify(key)}`)
}

/**
 * Completes the store's settings. A key that signs links is derived from the master key. So all processes have the same
 * one, and it does not need to be stored.
 * @param publicUrl the service's own address; the setting PUBLIC_URL overrides it
 */
export function storeSettings(
  config: Pick<Config, 'store' | 'publicUrl'>,
  masterKeys: readonly Buffer[],
  publicUrl: string,
): StoreSettings {
  if (config.store.kind !== 'filesystem') return config.store
  return {
    ...config.store,
    publicUrl: config.publicUrl ?? publicUrl,
    signingKeys: masterKeys.map(signingKeyOf),
  }
}

/** Derives the key that signs links, hexadecimal. */
export function signingKeyOf(masterKey: Buffer): string {
  return Buffer.from(hkdfSync('sha256', masterKey, '', 'grandlivre: links to files', 32)).toString('hex')
}
