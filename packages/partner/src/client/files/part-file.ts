/**
 * A download on disk until it is whole: `<file>.part` with the bytes so far, and `<file>.part.json`, which says of which
 * file they are. After a kill the same download goes on where the bytes end.
 */
import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { clientError } from '../errors.ts'

/** The file that is being downloaded. Its hash names it: the address changes with each status. */
export interface PartIdentity {
  exportId: string
  fileSha256: string
  size: number
}

interface PartState extends PartIdentity {
  /** Of the file server, for `If-Range`. */
  etag?: string
}

export class PartFile {
  readonly #file: string
  readonly #identity: PartIdentity
  #handle: FileHandle
  #hash: Hash
  #isClosed = false
  /** Bytes so far. */
  bytes: number
  etag: string | undefined
  /** Whether there were bytes of another file, or none that could be used. */
  readonly hasDropped: boolean

  private constructor(file: string, identity: PartIdentity, handle: FileHandle, kept: Kept) {
    this.#file = file
    this.#identity = identity
    this.#handle = handle
    this.#hash = kept.hash
    this.bytes = kept.bytes
    this.etag = kept.etag
    this.hasDropped = kept.hasDropped
  }

  /**
   * Takes up the part of the same file, and reads its bytes again for the hash; begins a new one otherwise.
   * @throws {GrandlivreError} FILE-NOT-WRITTEN
   */
  static async open(
    file: string,
    identity: PartIdentity,
    signal: AbortSignal | undefined,
  ): Promise<PartFile> {
    try {
      const kept = await readKept(file, identity, signal)
      if (kept) return new PartFile(file, identity, await open(partOf(file), 'r+'), kept)
      const hasDropped = await stat(partOf(file)).then(Boolean, () => false)
      const handle = await createPart(file)
      const nothing = { bytes: 0, hash: createHash('sha256'), etag: undefined, hasDropped }
      return new PartFile(file, identity, handle, nothing)
    } catch (error) {
      throw notWritten(file, error, signal)
    }
  }

  get path(): string {
    return partOf(this.#file)
  }

  get exportId(): string {
    return this.#identity.exportId
  }

  /** Drops what is there. */
  async beginAgain(): Promise<void> {
    await this.#writing(async () => {
      await this.#handle.close()
      this.#handle = await createPart(this.#file)
    })
    this.#hash = createHash('sha256')
    this.bytes = 0
    this.etag = undefined
  }

  /** Before the first byte, so that bytes on disk always have a state beside them. */
  async remember(etag: string | undefined): Promise<void> {
    this.etag = etag
    const state: PartState = { ...this.#identity, ...(etag === undefined ? {} : { etag }) }
    await this.#writing(() => replaceState(this.#file, JSON.stringify(state)))
  }

  async append(chunk: Uint8Array): Promise<void> {
    await this.#writing(async () => {
      for (let at = 0; at < chunk.length; ) {
        const { bytesWritten } = await this.#handle.write(chunk, at, chunk.length - at, this.bytes + at)
        at += bytesWritten
      }
    })
    this.#hash.update(chunk)
    this.bytes += chunk.length
  }

  /** Whether the bytes are those of the file. Afterwards nothing can be appended. */
  isRight(): boolean {
    return this.#hash.digest('hex') === this.#identity.fileSha256
  }

  /** Gives the part its name, once it is on disk for good. */
  async finish(): Promise<void> {
    await this.#writing(async () => {
      await this.#handle.sync()
      const [written, named] = [await this.#handle.stat(), await stat(this.path)]
      if (written.ino !== named.ino || written.size !== this.#identity.size)
        throw new Error('another program writes to it: let one end before the other begins')
      await this.close()
      await namePart(this.#file)
    })
  }

  /** Leaves nothing for the next time. */
  async remove(): Promise<void> {
    await this.close()
    for (const path of [partOf(this.#file), stateFileOf(this.#file)]) await rm(path, { force: true })
  }

  /** Keeps what is there for the next time. It may have been closed before. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#handle.close()
  }

  #writing(run: () => Promise<void>): Promise<void> {
    return run().catch((error: unknown) => {
      throw notWritten(this.#file, error)
    })
  }
}

export const partOf = (file: string) => `${file}.part`
export const stateFileOf = (file: string) => `${file}.part.json`

interface Kept {
  bytes: number
  hash: Hash
  etag: string | undefined
  hasDropped: boolean
}

async function readKept(
  file: string,
  identity: PartIdentity,
  signal: AbortSignal | undefined,
): Promise<Kept | undefined> {
  const state = await readState(file)
  if (state?.fileSha256 !== identity.fileSha256 || state.size !== identity.size) return undefined
  const hash = createHash('sha256')
  let bytes = 0
  try {
    for await (const chunk of createReadStream(partOf(file), signal ? { signal } : {})) {
      hash.update(chunk)
      bytes += chunk.length
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  return bytes > identity.size ? undefined : { bytes, hash, etag: state.etag, hasDropped: false }
}

/** What a download has left; undefined if nothing, or nothing that can be read. */
async function readState(file: string): Promise<Partial<PartState> | undefined> {
  try {
    return JSON.parse(await readFile(stateFileOf(file), 'utf8')) ?? undefined
  } catch {
    return undefined
  }
}

/**
 * A new file and not the old one emptied, which another download may still be writing to.
 * @internal of the package: programs of partners need no types of Node
 */
export async function createPart(file: string): Promise<FileHandle> {
  await rm(partOf(file), { force: true })
  return open(partOf(file), 'wx')
}

/** A kill leaves a whole state or none. */
export async function replaceState(file: string, text: string): Promise<void> {
  await writeFile(`${stateFileOf(file)}.new`, text)
  await rename(`${stateFileOf(file)}.new`, stateFileOf(file))
}

/** Gives the part, which is closed, the name of the file. */
export async function namePart(file: string): Promise<void> {
  await rename(partOf(file), file)
  await syncFolder(dirname(file))
  await rm(stateFileOf(file), { force: true })
}

/** Keeps the names of a folder's files on disk. Some systems cannot open a folder; there the rename itself has to do. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => undefined)
  await handle?.sync().catch(() => {})
  await handle?.close()
}

function notWritten(file: string, cause: unknown, signal?: AbortSignal): unknown {
  if (signal?.aborted) return signal.reason
  const { code, message } = cause as NodeJS.ErrnoException
  const why = code === 'ENOSPC' ? 'the disk is full' : message
  return clientError('FILE-NOT-WRITTEN', `${partOf(file)}: ${why}`, { cause })
}
