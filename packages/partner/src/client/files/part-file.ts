/**
 * A download on disk until it is whole: `<file>.part` with the bytes so far, and `<file>.part.json`, which says of which
 * file they are. After a kill the same download goes on where the bytes end.
 */
import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { clientError } from '../errors.ts'

/** What names the file that is being downloaded: the address changes with each status. */
interface DownloadedFile {
  /** Id of its export. */
  id: string
  fileSha256: string
  size: number
}

export type PartialDownload = Awaited<ReturnType<typeof openPartialDownload>>

/**
 * Takes up the part of the same file, and reads its bytes again for the hash; begins a new one otherwise.
 * @throws {GrandlivreError} FILE-NOT-WRITTEN
 */
export async function openPartialDownload(
  file: string,
  { id: exportId, fileSha256, size }: DownloadedFile,
  signal: AbortSignal | undefined,
) {
  const path = partOf(file)
  let { handle, hash, bytes, etag, hasDropped } = await takeUp(file, { fileSha256, size }, signal)
  let isClosed = false
  const writing = (run: () => Promise<void>): Promise<void> =>
    run().catch((error: unknown) => {
      throw notWritten(file, error)
    })
  /** Keeps what is there for the next time. It may have been closed before. */
  const close = async (): Promise<void> => {
    if (!isClosed) await handle.close()
    isClosed = true
  }
  return {
    ...{ exportId, path, close },
    /** Whether there were bytes of another file, or bytes that could not be used. */
    hasDropped,
    get bytes() {
      return bytes
    },
    get etag() {
      return etag
    },

    /** Drops the bytes that are there. */
    async beginAgain(): Promise<void> {
      await writing(async () => {
        await handle.close()
        handle = await createPart(file)
      })
      hash = createHash('sha256')
      bytes = 0
      etag = undefined
    },

    /** Before the first byte, so that bytes on disk always have a state beside them. @param sent of the file server */
    remember(sent: string | undefined): Promise<void> {
      etag = sent
      // JSON leaves out an ETag that is undefined.
      return writing(() => replaceState(file, JSON.stringify({ exportId, fileSha256, size, etag })))
    },

    async append(chunk: Uint8Array): Promise<void> {
      await writing(async () => {
        for (let at = 0; at < chunk.length; )
          at += (await handle.write(chunk, at, chunk.length - at, bytes + at)).bytesWritten
      })
      hash.update(chunk)
      bytes += chunk.length
    },

    /** Whether the bytes are those of the file. Afterwards nothing can be appended. */
    isRight: () => hash.digest('hex') === fileSha256,

    /** Gives the part its name, once it is on disk for good. */
    finish: () =>
      writing(async () => {
        await handle.sync()
        const [written, named] = [await handle.stat(), await stat(path)]
        if (written.ino !== named.ino || written.size !== size)
          throw new Error('another program writes to it: let one end before the other begins')
        await close()
        await namePart(file)
      }),

    /** Leaves nothing for the next time. */
    async remove(): Promise<void> {
      await close()
      for (const each of [path, stateFileOf(file)]) await rm(each, { force: true })
    },
  }
}

export const partOf = (file: string) => `${file}.part`
export const stateFileOf = (file: string) => `${file}.part.json`

async function takeUp(
  file: string,
  { fileSha256, size }: Omit<DownloadedFile, 'id'>,
  signal: AbortSignal | undefined,
) {
  const path = partOf(file)
  try {
    const state = await readState(file)
    const isThere = await stat(path).then(Boolean, () => false)
    if (isThere && state?.fileSha256 === fileSha256 && state.size === size) {
      const kept = await digestOf(createReadStream(path, signal ? { signal } : {}))
      if (kept.bytes <= size)
        return { ...kept, handle: await open(path, 'r+'), etag: state.etag, hasDropped: false }
    }
    const empty = { bytes: 0, hash: createHash('sha256'), etag: undefined, hasDropped: isThere }
    return { ...empty, handle: await createPart(file) }
  } catch (error) {
    throw notWritten(file, error, signal)
  }
}

/** The number of bytes, and their SHA-256. */
export async function digestOf(chunks: AsyncIterable<Uint8Array>): Promise<{ bytes: number; hash: Hash }> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of chunks) {
    hash.update(chunk)
    bytes += chunk.length
  }
  return { bytes, hash }
}

/** The state that an earlier download has left; undefined if there is none that can be read. */
async function readState(
  file: string,
): Promise<{ fileSha256?: string; size?: number; etag?: string } | undefined> {
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

/** Replaces the state at once: a kill leaves a whole state or none. */
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
