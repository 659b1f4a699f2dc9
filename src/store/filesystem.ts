/**
 * Stores files in a local folder, at paths equal to their keys. While an object is written, it lies in its final
 * folder, under a name that no key can have. When it is complete and on disk, it is renamed. Removing the last file of
 * a folder also removes the folder. So a new folder may vanish before its first file exists; then it is created again.
 *
 * The content type is not stored: the file ending of the key determines it (formats/file-formats.ts).
 */
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { access, type FileHandle, mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { signLink } from './file-links.ts'
import { checkKey, type ObjectStore, type ObjectWriter, StoreError, type StoreSettings } from './store.ts'

type FilesystemSettings = Extract<StoreSettings, { kind: 'filesystem' }>

/** Returns the store's key that signs now, hexadecimal. */
export type SignsWith = () => Promise<string>

/** Most tries to create a file. A folder does not vanish that often between its creation and its first file. */
const createTries = 100

/** Name of an unfinished file: its final name, when writing began in epoch milliseconds, and a unique suffix. */
const unfinishedName = /^\.(.+)\.(\d{13})-[0-9a-f]{12}\.part$/

/** Bytes between syncs. A single sync of 1.4 GB at the end took 0.6 s, during which nothing else could be done. */
const flushBytes = 64 * 1024 * 1024

export interface OpenFile {
  /** The caller must close it. */
  handle: FileHandle
  bytes: number
  at: Date
}

export class FilesystemStore implements ObjectStore {
  readonly #settings: FilesystemSettings
  readonly #signsWith: SignsWith

  constructor(settings: FilesystemSettings, signsWith: SignsWith = async () => settings.signingKeys[0]!) {
    this.#settings = { ...settings, folder: resolve(settings.folder) }
    this.#signsWith = signsWith
  }

  async create(key: string, _contentType: string): Promise<ObjectWriter> {
    checkKey(key)
    const path = join(this.#settings.folder, key)
    const suffix = `${Date.now()}-${randomBytes(6).toString('hex')}`
    const draft = join(dirname(path), `.${basename(path)}.${suffix}.part`)
    const handle = await inStoreTerms(draft, () => createFile(draft))
    return new FileWriter(this.#settings.folder, path, draft, handle)
  }

  async signedUrl(key: string, fileName: string, seconds: number): Promise<string> {
    checkKey(key)
    const expires = Math.floor(Date.now() / 1000) + seconds
    return this.#settings.publicUrl + signLink({ key, fileName, expires }, await this.#signsWith())
  }

  /** Opens a file for the route that serves files. @returns undefined if there is no such object */
  async open(key: string): Promise<OpenFile | undefined> {
    checkKey(key)
    const path = join(this.#settings.folder, key)
    try {
      // The service creates no symbolic links: any that is found could lead out of the folder.
      const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
      const found = await handle.stat()
      if (found.isFile()) return { handle, bytes: found.size, at: found.mtime }
      // The key names a folder, or something else that is not a file.
      await handle.close()
      return undefined
    } catch (error) {
      if (isAbsent(error)) return undefined
      throw storeError(path, error)
    }
  }

  /** Each link of this store was signed with one of these keys. */
  get signingKeys(): readonly string[] {
    return this.#settings.signingKeys
  }

  async remove(key: string): Promise<void> {
    checkKey(key)
    await this.#remove(join(this.#settings.folder, key))
  }

  async #remove(path: string): Promise<void> {
    await inStoreTerms(path, () => removeFile(path, this.#settings.folder))
  }

  async sweep(before: Date): Promise<number> {
    let removed = 0
    for await (const path of this.#paths()) {
      const began = unfinishedName.exec(basename(path))?.[2]
      if (began === undefined || Number(began) >= before.getTime()) continue
      await this.#remove(path)
      removed += 1
    }
    return removed
  }

  async clear(folder: string, isLeft: (key: string) => boolean): Promise<void> {
    checkKey(folder)
    const root = this.#settings.folder
    // Unfinished writes come first: one that completes just before its removal is then found among the complete files.
    for (const unfinished of [true, false])
      for await (const path of this.#paths(join(root, folder))) {
        const name = unfinishedName.exec(basename(path))?.[1]
        const key = relative(root, name === undefined ? path : join(dirname(path), name))
        if (unfinished === (name !== undefined) && isLeft(key)) await this.#remove(path)
      }
  }

  async *listObjects(before: Date): AsyncIterable<{ key: string; at: Date }> {
    for await (const path of this.#paths()) {
      if (basename(path).startsWith('.')) continue
      const file = await stat(path).catch(unlessAbsent)
      const key = relative(this.#settings.folder, path)
      if (file && file.mtime < before) yield { key, at: file.mtime }
    }
  }

  async check(): Promise<void> {
    const { folder } = this.#settings
    await inStoreTerms(folder, async () => {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await access(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    })
  }

  /** Paths of all files, including unfinished ones. A folder that is removed meanwhile counts as empty. */
  async *#paths(folder = this.#settings.folder): AsyncGenerator<string> {
    const found = await readdir(folder, { withFileTypes: true }).catch((error) => {
      unlessAbsent(error, folder)
      return []
    })
    for (const entry of found) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) yield* this.#paths(path)
      else if (entry.isFile()) yield path
    }
  }
}

class FileWriter implements ObjectWriter {
  readonly #root: string
  readonly #path: string
  readonly #draft: string
  readonly #handle: FileHandle
  #written = 0
  /** Number of bytes that a sync has covered or is about to. */
  #flushed = 0
  #flushing: Promise<void> | undefined
  #flushFailure: unknown
  #ended: 'completed' | 'aborted' | undefined
  #failure: StoreError | undefined
  #discarded: Promise<void> = Promise.resolve()
  /** Settles, never with an error, when the last step is done. */
  #step: Promise<unknown> = Promise.resolve()

  /** @param root the store's folder: the folder of `path`, or one above it */
  constructor(root: string, path: string, draft: string, handle: FileHandle) {
    this.#root = root
    this.#path = path
    this.#draft = draft
    this.#handle = handle
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#take(async () => {
      for (let at = 0; at < bytes.length; ) {
        const { bytesWritten } = await this.#handle.write(bytes, at, bytes.length - at)
        at += bytesWritten
        this.#written += bytesWritten
      }
    })
    this.#flush()
  }

  /**
   * Starts a sync without waiting for it, so that the disk works while the next bytes are produced. complete() reports
   * failures.
   */
  #flush(): void {
    if (this.#flushing || this.#written - this.#flushed < flushBytes) return
    this.#flushed = this.#written
    this.#flushing = this.#handle
      .datasync()
      .catch((error: unknown) => {
        this.#flushFailure = error
      })
      .finally(() => {
        this.#flushing = undefined
      })
  }

  async complete(expected: { bytes: number }): Promise<void> {
    await this.#take(async () => {
      await this.#flushing
      // The disk reports a failure only once, so another sync() would not find it.
      if (this.#flushFailure) throw this.#flushFailure
      await this.#handle.sync()
      const { size } = await this.#handle.stat()
      if (size !== expected.bytes || this.#written !== expected.bytes)
        throw new StoreError(`${this.#draft} has ${size} bytes instead of ${expected.bytes}`, {
          retryable: true,
        })
      await this.#handle.close()
      await rename(this.#draft, this.#path)
      try {
        // A file's name is on disk once its folder is synced, and the folder's own name once its parents are.
        for (let folder = dirname(this.#path); ; folder = dirname(folder)) {
          await syncFolder(folder)
          if (folder === this.#root) break
        }
      } catch (error) {
        await rm(this.#path, { force: true })
        throw error
      }
      this.#ended = 'completed'
    })
  }

  async abort(): Promise<void> {
    await this.#step
    await this.#discard()
  }

  /** A second call waits for the first, so that nothing is left of an export when it is reported as lost. */
  #discard(): Promise<void> {
    if (this.#ended === undefined) {
      this.#ended = 'aborted'
      const close = this.#handle.close().catch(() => {})
      this.#discarded = close.then(() => removeFile(this.#draft, this.#root)).catch(() => {})
    }
    return this.#discarded
  }

  async #take(run: () => Promise<void>): Promise<void> {
    if (this.#failure) throw this.#failure
    if (this.#ended) throw new StoreError(`${this.#path} is already ${this.#ended}`, { retryable: false })
    const step = inStoreTerms(this.#draft, run)
    this.#step = step.catch(() => {})
    try {
      await step
    } catch (error) {
      this.#failure = error as StoreError
      await this.#discard()
      throw error
    }
  }
}

/** Creates the file, and its folder if it is missing. */
async function createFile(path: string): Promise<FileHandle> {
  for (let tries = 1; ; tries += 1) {
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      return await open(path, 'wx', 0o600)
    } catch (error) {
      // Another process removed the empty folder in between. If that happens while mkdir creates the parents, the error
      // is ENOTDIR: once in some 500 tries with eight writers in one folder.
      if (!['ENOENT', 'ENOTDIR'].includes(codeOf(error)) || tries === createTries) throw error
    }
  }
}

/**
 * Removes the file, and then its empty parent folders up to the store's folder. No error if the file does not exist.
 */
async function removeFile(path: string, root: string): Promise<void> {
  await rm(path, { force: true })
  let folder = dirname(path)
  while (folder !== root && (await removeFolder(folder))) folder = dirname(folder)
  await syncFolder(folder).catch(unlessAbsent)
}

/** Returns false if the folder stays, because it is not empty or may not be removed. */
function removeFolder(path: string): Promise<boolean> {
  return rmdir(path).then(() => true, isAbsent)
}

async function syncFolder(path: string): Promise<void> {
  await using handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  await handle.sync()
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? ''
}

function isAbsent(error: unknown): boolean {
  // A key may name a folder, or go on after the name of a file. There is no object in either case.
  return ['ENOENT', 'ENOTDIR', 'EISDIR', 'ELOOP'].includes(codeOf(error))
}

function unlessAbsent(error: unknown, path = ''): undefined {
  if (!isAbsent(error)) throw storeError(path, error)
}

async function inStoreTerms<Result>(path: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    throw error instanceof StoreError ? error : storeError(path, error)
  }
}

function storeError(path: string, cause: unknown): StoreError {
  const { code = '', message } = cause as NodeJS.ErrnoException
  const refused = { retryable: false, cause }
  if (['ENOSPC', 'EDQUOT'].includes(code))
    return new StoreError(`The disk is full: ${path} could not be written. Free some space`, refused)
  if (['EACCES', 'EPERM', 'EROFS'].includes(code))
    return new StoreError(`The service has no permission to use ${path}: ${message}`, refused)
  return new StoreError(`${path} failed: ${message}`, { retryable: true, cause })
}
