/**
 * The unfinished file of a pull, `<out>.part`, and its state, `<out>.part.json`, from which a later run goes on.
 *
 * The file can be cut and continued after each piece. The state is written after each piece and replaced as a whole, so
 * after a kill at any moment the file is at least as long as its state says. Bytes beyond that are cut off. A rename
 * makes the finished file appear.
 */
import { createReadStream } from 'node:fs'
import { type FileHandle, open, readFile, rm, stat } from 'node:fs/promises'
import { PassThrough, pipeline } from 'node:stream'
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { createPart, namePart, partOf, replaceState, stateFileOf } from '../../client/files/part-file.ts'
import { localFailure } from '../exit-codes.ts'
import { isRunning } from '../running-process.ts'

/** What the content of a file depends on: two pulls with the same source make the same file. */
export interface PullSource {
  baseUrl: string
  /** Id of the folder. */
  society: string
  /** The parameters of the selection. */
  selection: Readonly<Record<string, unknown>>
}

/** How much of the file is written, and which state of the ledger it shows. */
interface Checkpoint {
  /** The ETag of the first answer; empty before that answer. */
  etag: string
  cursor: string
  /** `producerId` of the last movement; null before the first. */
  after: string | null
  rows: number
  /** Bytes of the content before compression. */
  contentBytes: number
  fileBytes: number
}

interface State extends PullSource, Checkpoint {
  /** A note for people who open the file. */
  about: string
  /** Number of the process that writes the file. No other process may write it. */
  pid: number
}

const about = 'An unfinished pull by grandlivre. The same command goes on with it.'

const beginning: Checkpoint = { etag: '', cursor: '', after: null, rows: 0, contentBytes: 0, fileBytes: 0 }

export type PartFile = Awaited<ReturnType<typeof openPart>>

/**
 * Opens the unfinished file, cut to its last whole piece, or begins a new one.
 * @param force discards an unfinished file of another source
 * @throws {Failure} if there is an unfinished file of another source
 */
export async function openPart(out: string, source: PullSource, force: boolean) {
  const path = partOf(out)
  const compression = compressionOf(out)
  const size = (await ifThere(stat(path)))?.size
  // A kill just after the rename leaves the state behind without the file.
  const left = size === undefined ? undefined : await stateToContinue(out, source, force)
  if (left === undefined && size !== undefined && !force)
    throw localFailure(
      `${path} exists, and is not an unfinished pull`,
      'Move it away, choose another --out, or give --force to replace it.',
    )
  // A crash of the machine may have kept the state but lost the end of the file.
  const goesOn = left !== undefined && left.etag !== '' && left.fileBytes <= size!
  let checkpoint: Checkpoint = goesOn ? left : beginning
  const record = (reached: Checkpoint) => {
    checkpoint = reached
    const state: State = { about, ...source, ...reached, pid: process.pid }
    return replaceState(out, `${JSON.stringify(state, null, 2)}\n`)
  }
  await record(checkpoint)
  const file = goesOn ? await open(path, 'r+') : await createPart(out)
  await file.truncate(checkpoint.fileBytes)
  return {
    path,
    /** The checkpoint that the file has reached. */
    reached: () => checkpoint,

    /** Makes a writer of the content that follows what the file already has. */
    writer: () => createPieceWriter(file, compression, checkpoint, record),

    /** The content that the file has, decompressed, chunk by chunk. */
    content: () => contentOf(path, compression),

    /** Empties the file, so that the pull begins again. */
    async restart(): Promise<void> {
      await record(beginning)
      await file.truncate(0)
    },

    /** Removes the files of a pull that has written nothing, for example because the service refused it. */
    async removeEmpty(): Promise<void> {
      if (checkpoint.etag === '') for (const each of [path, stateFileOf(out)]) await rm(each, { force: true })
    },

    /** Writes the whole file to the disk, then gives it its final name. @returns its length in bytes */
    async finish(): Promise<number> {
      await file.sync()
      const { size, ino } = await file.stat()
      if (ino !== (await stat(path).catch(() => undefined))?.ino)
        throw localFailure(
          `${path} was moved, or replaced by another pull`,
          'Let one pull end before another one writes the same file.',
        )
      await file.close()
      await namePart(out)
      return size
    },

    close: () => file.close(),
  }
}

/** @returns undefined if the pull has to begin again */
async function stateToContinue(out: string, source: PullSource, force: boolean): Promise<State | undefined> {
  const found = await readState(out).catch((error: Error) => {
    if (!force) throw error
  })
  if (found === undefined) return undefined
  if (found.pid !== process.pid && isRunning(found.pid))
    throw localFailure(
      `Another pull, process ${found.pid}, writes ${partOf(out)}`,
      `Wait for its end. If process ${found.pid} is something else, delete ${stateFileOf(out)} and ${partOf(out)}.`,
    )
  // An empty ETag: the other pull was killed before its first piece, so nothing is lost.
  if (sourceText(found) === sourceText(source) || found.etag === '') return found
  if (force) return undefined
  throw localFailure(
    `${partOf(out)} is an unfinished pull of ${sourceText(found)}, and this one is of ${sourceText(source)}`,
    'Finish that one first, choose another --out, or give --force to discard it.',
  )
}

export function isStateOfPull(text: string): boolean {
  try {
    return JSON.parse(text)?.about === about
  } catch {
    return false
  }
}

async function readState(out: string): Promise<State | undefined> {
  const text = await ifThere(readFile(stateFileOf(out), 'utf8'))
  if (text === undefined) return undefined
  if (isStateOfPull(text)) return JSON.parse(text)
  throw localFailure(
    `${stateFileOf(out)} is not the state of an unfinished pull`,
    'Move it away, choose another --out, or give --force to begin again.',
  )
}

function sourceText({ baseUrl, society, selection }: PullSource): string {
  const parameters = Object.entries(selection).map(([name, value]) => `${name} ${value}`)
  return `${parameters.sort().join(', ')} of the folder ${society} at ${baseUrl}`
}

function ifThere<Found>(reading: Promise<Found>): Promise<Found | undefined> {
  return reading.catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    return undefined
  })
}

/** Least content bytes of a piece. A kill would lose more of larger pieces, which compress no better. */
const pieceBytes = 1024 * 1024
/** Most pieces that are compressed or written at the same time. Each needs twice its size in memory. */
const piecesAtOnceMax = 4

/** The last row of a piece, and the state of the ledger that the row belongs to. */
type RowMark = Omit<Checkpoint, 'contentBytes' | 'fileBytes'>

/**
 * Gathers chunks into pieces of about 1 MB. Several pieces are compressed at the same time, and written in order.
 * @param record called after each piece that was written
 */
function createPieceWriter(
  file: FileHandle,
  compression: Compression,
  start: Checkpoint,
  record: (reached: Checkpoint) => Promise<void>,
) {
  let { contentBytes, fileBytes } = start
  let waiting: Uint8Array[] = []
  let waitingBytes = 0
  /** Resolves when all pieces so far are written. */
  let written: Promise<void> = Promise.resolve()
  const running: Promise<void>[] = []

  const write = async (
    before: Promise<void>,
    packed: Promise<Uint8Array[]>,
    mark: RowMark,
    bytes: number,
  ) => {
    const [, piece] = await Promise.all([before, packed])
    fileBytes += await writeAll(file, piece, fileBytes)
    await record({ ...mark, contentBytes: bytes, fileBytes })
  }

  const endPiece = (mark: RowMark) => {
    const chunks = waiting
    waiting = []
    waitingBytes = 0
    const packed = compression
      ? compression.pack(Buffer.concat(chunks)).then((piece) => [piece])
      : Promise.resolve(chunks)
    written = write(written, packed, mark, contentBytes)
    // The next wait, for a piece or for the end, throws the error.
    written.catch(() => {})
    running.push(written)
  }

  return {
    /** Content bytes taken so far, before compression. */
    contentBytes: () => contentBytes,

    /** @param mark returns the last row of the chunk; called only if a piece ends with the chunk */
    async add(chunk: Uint8Array, mark: () => RowMark): Promise<void> {
      waiting.push(chunk)
      waitingBytes += chunk.length
      contentBytes += chunk.length
      if (waitingBytes < pieceBytes) return
      endPiece(mark())
      if (running.length >= piecesAtOnceMax) await running.shift()
    },

    /** Writes the rest. */
    async end(mark: RowMark): Promise<void> {
      // Even an empty file gets a piece: a compressed file without any could not be decompressed.
      if (waitingBytes > 0 || contentBytes === 0) endPiece(mark)
      await written
    },

    /** Waits until the pieces that are being written have been written or have failed. It does not throw. */
    arrived: (): Promise<void> => written.catch(() => {}),
  }
}

/** @returns bytes written @throws the error of the system if not all can be written */
async function writeAll(file: FileHandle, chunks: Uint8Array[], position: number): Promise<number> {
  const bytes = chunks.reduce((sum, { length }) => sum + length, 0)
  if (bytes === 0) return 0
  let { bytesWritten: done } = await file.writev(chunks, position)
  if (done === bytes) return bytes
  // On a full disk a write takes only part of the bytes, and the next write fails.
  const all = Buffer.concat(chunks)
  while (done < bytes) done += (await file.write(all, done, bytes - done, position + done)).bytesWritten
  return bytes
}

/** Buffers larger than Node's defaults save a quarter of the time. */
const readBytes = 1024 * 1024
const chunkSize = 256 * 1024

export function compressionNamed(path: string): 'gzip' | 'zstd' | undefined {
  if (path.endsWith('.gz')) return 'gzip'
  return path.endsWith('.zst') ? 'zstd' : undefined
}

type Compression = ReturnType<typeof compressionOf>

/**
 * How a file is compressed. The end of its name says so: `.gz`, `.zst`, or none of them. `pack` makes one piece of the
 * file: a gzip member or a zstd frame. Pieces one after the other form a valid file.
 * @throws {Failure} if the name ends in .zst and this Node has no zstd
 */
export function compressionOf(path: string) {
  const name = compressionNamed(path)
  if (name === undefined) return undefined
  const [pack, unpack] =
    name === 'gzip' ? [zlib.gzip, zlib.createGunzip] : [zlib.zstdCompress, zlib.createZstdDecompress]
  if (pack === undefined)
    throw localFailure(
      `Node ${process.versions.node} has no zstd, which ${path} needs`,
      'Use Node 22.15 or newer (23.8 in the 23 line), or let the name end in .gz.',
    )
  return { pack: promisify<zlib.InputType, Buffer>(pack), unpack: () => unpack({ chunkSize }) }
}

function contentOf(path: string, compression: Compression): AsyncIterable<Uint8Array> {
  const file = createReadStream(path, { highWaterMark: readBytes })
  if (compression === undefined) return file
  // An error of the file destroys the decompression, so its reader gets the error.
  return pipeline(file, compression.unpack(), new PassThrough(), () => {})
}
