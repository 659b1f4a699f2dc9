/**
 * A download that is not whole yet: `<file>.part` with the bytes so far, and `<file>.part.json`, which identifies the
 * file that they belong to. After a kill the same download goes on after the last byte.
 */
import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { clientError } from '../errors.ts'

export type PartialDownload = Awaited<ReturnType<typeof openPartialDownload>>

/**
 * Opens the part of the same file and reads its bytes again for the hash, or begins a new part. The hash and the size
 * identify the file. Its address does not, because each status contains another one.
 * @param source the export's id, and what its status states about the file
 * @throws {GrandlivreError} FILE-NOT-WRITTEN
 */
export async function openPartialDownload(
  file: string,
  { id: exportId, fileSha256, size }: { id: string; fileSha256: string; size: number },
  signal: AbortSignal | undefined,
) {
  const path = partOf(file)
  let { handle, hash, bytes, etag, hasDropped } = await openOrCreatePart(file, { fileSha256, size }, signal)
  let isClosed = false
  const writing = (run: () => Promise<void>): Promise<void> =>
    run().catch((error: unknown) => {
      throw notWritten(file, error)
    })
  /** Closes the file and keeps its bytes for the next time. It may be closed already. */
  const close = async (): Promise<void> => {
    if (!isClosed) await handle.close()
    isClosed = true
  }
  return {
    ...{ exportId, path, close },
    /** Whether bytes were discarded because they belonged to another file or could not be used. */
    hasDropped,
    get bytes() {
      return bytes
    },
    get etag() {
      return etag
    },

    /** Discards the stored bytes. */
    async beginAgain(): Promise<void> {
      await writing(async () => {
        await handle.close()
        handle = await createPart(file)
      })
      hash = createHash('sha256')
      bytes = 0
      etag = undefined
    },

    /**
     * Called before the first byte, so that bytes on disk always have a state beside them. @param sent the ETag that
     * the file server sent
     */
    remember(sent: string | undefined): Promise<void> {
      etag = sent
      // JSON omits an ETag that is undefined.
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

    /** Whether the bytes have the hash of the file. After this call nothing can be appended. */
    isRight: () => hash.digest('hex') === fileSha256,

    /** Makes sure that the part is on the disk, then gives it the name of the file. */
    finish: () =>
      writing(async () => {
        await handle.sync()
        const [written, named] = [await handle.stat(), await stat(path)]
        if (written.ino !== named.ino || written.size !== size)
          throw new Error('another program writes to it: let one end before the other begins')
        await close()
        await namePart(file)
      }),

    /** Removes the part and its state. */
    async remove(): Promise<void> {
      await close()
      for (const each of [path, stateFileOf(file)]) await rm(each, { force: true })
    },
  }
}

export const partOf = (file: string) => `${file}.part`
export const stateFileOf = (file: string) => `${file}.part.json`

/** Opens the part that an earlier download of the same file left, or creates a part. */
async function openOrCreatePart(
  file: string,
  { fileSha256, size }: { fileSha256: string; size: number },
  signal: AbortSignal | undefined,
) {
  const path = partOf(file)
  try {
    const state = await readState(file)
    const isThere = await stat(path).then(Boolean, () => false)
    if (isThere && state?.fileSha256 === fileSha256 && state.size === size) {
      const kept = await hashOf(createReadStream(path, signal ? { signal } : {}))
      if (kept.bytes <= size)
        return { ...kept, handle: await open(path, 'r+'), etag: state.etag, hasDropped: false }
    }
    const empty = { bytes: 0, hash: createHash('sha256'), etag: undefined, hasDropped: isThere }
    return { ...empty, handle: await createPart(file) }
  } catch (error) {
    throw notWritten(file, error, signal)
  }
}

/** Counts bytes and makes their SHA-256. */
export async function hashOf(chunks: AsyncIterable<Uint8Array>): Promise<{ bytes: number; hash: Hash }> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of chunks) {
    hash.update(chunk)
    bytes += chunk.length
  }
  return { bytes, hash }
}

/** The state that an earlier download left; undefined if no state is there or it cannot be read. */
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
 * Makes a new file. An old file is removed, not emptied: another download may still be writing to it.
 * @internal of the package: programs of partners need no types of Node
 */
export async function createPart(file: string): Promise<FileHandle> {
  await rm(partOf(file), { force: true })
  return open(partOf(file), 'wx')
}

/** Replaces the state in one step, so that a kill never leaves half of it. */
export async function replaceState(file: string, text: string): Promise<void> {
  await writeFile(`${stateFileOf(file)}.new`, text)
  await rename(`${stateFileOf(file)}.new`, stateFileOf(file))
}

/** Gives the part, which must be closed, the name of the file. */
export async function namePart(file: string): Promise<void> {
  await rename(partOf(file), file)
  await syncFolder(dirname(file))
  await rm(stateFileOf(file), { force: true })
}

/**
 * Makes sure that the names of a folder's files are on the disk. Some systems cannot open a folder: there the names may
 * reach the disk later.
 */
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
