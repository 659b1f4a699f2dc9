/**
 * Files in a folder of this machine, at paths that are their keys. An object is written under a name that no key can
 * have, in the folder where it will lie, and renamed when it is whole and on the disk. Whoever removes the last file of
 * a folder removes the folder; so one may vanish before the first file is in it, and is made again then.
 *
 * The content type is not kept: the ending of the key tells it (formats/file-formats.ts).
 */
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { access, type FileHandle, mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { signLink } from './file-links.ts'
import { checkKey, type ObjectStore, type ObjectWriter, StoreError, type StoreSettings } from './store.ts'

type FilesystemSettings = Extract<StoreSettings, { kind: 'filesystem' }>

/** A folder does not vanish so often between its making and its first file. */
const createTries = 100

/** The name it is to have, the moment at which the write began, in epoch milliseconds, what makes the name unique. */
const unfinishedName = /^\.(.+)\.(\d{13})-[0-9a-f]{12}\.part$/

/** Left to the end, syncing 1.4 GB took 0.6 s in which nothing else was to be done. */
const flushBytes = 64 * 1024 * 1024

export interface OpenFile {
  /** To be closed by the caller. */
  handle: FileHandle
  bytes: number
  at: Date
}

export class FilesystemStore implements ObjectStore {
  readonly #settings: FilesystemSettings

  constructor(settings: FilesystemSettings) {
    this.#settings = { ...settings, folder: resolve(settings.folder) }
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
    return this.#settings.publicUrl + signLink({ key, fileName, expires }, this.#settings.signingKey)
  }

  /** For the route that serves the files. @returns undefined where there is none */
  async open(key: string): Promise<OpenFile | undefined> {
    checkKey(key)
    const path = join(this.#settings.folder, key)
    try {
      // Nothing here makes symbolic links: one that lies there all the same leads out of the folder.
      const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
      const found = await handle.stat()
      if (found.isFile()) return { handle, bytes: found.size, at: found.mtime }
      // A key may name the folder of others.
      await handle.close()
      return undefined
    } catch (error) {
      if (isAbsent(error)) return undefined
      throw storeError(path, error)
    }
  }

  /** Under which the links of this store are signed. */
  get signingKey(): string {
    return this.#settings.signingKey
  }

  async remove(key: string): Promise<void> {
    checkKey(key)
    const path = join(this.#settings.folder, key)
    await inStoreTerms(path, () => removeFile(path, this.#settings.folder))
  }

  async sweep(before: Date): Promise<number> {
    let removed = 0
    for await (const path of this.#paths()) {
      const began = unfinishedName.exec(basename(path))?.[2]
      if (began === undefined || Number(began) >= before.getTime()) continue
      await inStoreTerms(path, () => removeFile(path, this.#settings.folder))
      removed += 1
    }
    return removed
  }

  async clear(folder: string, isLeft: (key: string) => boolean): Promise<void> {
    checkKey(folder)
    const root = this.#settings.folder
    // What is unfinished first: if it is completed just before it would go, it is found among what is complete.
    for (const unfinished of [true, false])
      for await (const path of this.#paths(join(root, folder))) {
        const name = unfinishedName.exec(basename(path))?.[1]
        const key = relative(root, name === undefined ? path : join(dirname(path), name))
        if (unfinished === (name !== undefined) && isLeft(key))
          await inStoreTerms(path, () => removeFile(path, root))
      }
  }

  async *list(before: Date): AsyncIterable<{ key: string; at: Date }> {
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

  /** Of all files, those in the making included. A folder that is removed meanwhile is none. */
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
  /** How much of that the disk was told to keep, and that it is at it. */
  #flushed = 0
  #flushing: Promise<void> | undefined
  #flushFailure: unknown
  #ended: 'completed' | 'aborted' | undefined
  #failure: StoreError | undefined
  #discarded: Promise<void> = Promise.resolve()
  /** Settles, without an error, when what was asked last is done. */
  #step: Promise<unknown> = Promise.resolve()

  /** @param root the folder of the store, above or at that of `path` */
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

  /** Not waited for, as the disk works on it while the next bytes are made; complete() says what went wrong. */
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
      // A failure of the disk is told once: sync() would not tell it again.
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
        // The name is on the disk once the folder is, and the folder's own name once those above it are.
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

  /** Whoever asks second waits for the first: an export that is told as lost has left nothing. */
  #discard(): Promise<void> {
    if (this.#ended === undefined) {
      this.#ended = 'aborted'
      this.#discarded = this.#removeDraft()
    }
    return this.#discarded
  }

  async #removeDraft(): Promise<void> {
    await this.#handle.close().catch(() => {})
    await removeFile(this.#draft, this.#root).catch(() => {})
  }

  async #take(run: () => Promise<void>): Promise<void> {
    if (this.#failure) throw this.#failure
    if (this.#ended) throw new StoreError(`${this.#path} was ${this.#ended} before`, { retryable: false })
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

/** In a folder that is made where it is missing. */
async function createFile(path: string): Promise<FileHandle> {
  for (let tries = 1; ; tries += 1) {
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      return await open(path, 'wx', 0o600)
    } catch (error) {
      // Somebody removed the folder, which was empty, in between. While mkdir makes those above it, too, that shows as
      // ENOTDIR, once in some 500 tries of eight writers in one place.
      if (!['ENOENT', 'ENOTDIR'].includes(codeOf(error)) || tries === createTries) throw error
    }
  }
}

/** And the folders that are empty without it, up to that of the store. No error where it is not there. */
async function removeFile(path: string, root: string): Promise<void> {
  await rm(path, { force: true })
  let folder = dirname(path)
  while (folder !== root && (await removeFolder(folder))) folder = dirname(folder)
  await syncFolder(folder).catch(unlessAbsent)
}

/** False where it stays: something is in it, or it may not be removed. */
async function removeFolder(path: string): Promise<boolean> {
  try {
    await rmdir(path)
    return true
  } catch (error) {
    return isAbsent(error)
  }
}

async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? ''
}

function isAbsent(error: unknown): boolean {
  // A key may name a folder, or go on behind a file; there is no object either.
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
  const { code, message } = cause as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new StoreError(`The disk is full: ${path} could not be written. Free some space`, {
      retryable: false,
      cause,
    })
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS')
    return new StoreError(`The service may not use ${path}: ${message}`, { retryable: false, cause })
  return new StoreError(`${path} failed: ${message}`, { retryable: true, cause })
}
