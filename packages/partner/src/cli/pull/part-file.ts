/**
 * The unfinished file of a pull, `<out>.part`, and beside it what a later run needs to go on: `<out>.part.json`.
 *
 * After each piece the file can be cut there, and continued. The state is written then, and replaced whole, so that a
 * kill at any moment leaves a file that is at least as long as its state says. What is longer is cut off. The finished
 * file appears by a rename.
 */
import { createReadStream } from 'node:fs'
import { type FileHandle, open, readFile, rm, stat } from 'node:fs/promises'
import { PassThrough, pipeline, type Transform } from 'node:stream'
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { createPart, namePart, partOf, replaceState, stateFileOf } from '../../client/files/part-file.ts'
import { localFailure } from '../exit-codes.ts'
import { isRunning } from '../running-process.ts'

/** What a file consists of. Two pulls with the same source make the same file. */
export interface PullSource {
  baseUrl: string
  /** Id of the folder. */
  society: string
  /** The parameters of the selection. */
  selection: Readonly<Record<string, unknown>>
}

/** How far the file is, and of which state of the ledger. */
interface Checkpoint {
  /** Of the first answer; empty before it. */
  etag: string
  cursor: string
  /** `producerId` of the last movement; null before the first. */
  after: string | null
  rows: number
  /** Before compression. */
  contentBytes: number
  fileBytes: number
}

interface State extends PullSource, Checkpoint {
  /** For people who open the file. */
  about: string
  /** The process that writes. No other one may. */
  pid: number
}

const about = 'An unfinished pull by grandlivre. The same command goes on with it.'

const beginning: Checkpoint = { etag: '', cursor: '', after: null, rows: 0, contentBytes: 0, fileBytes: 0 }

export type PartFile = Awaited<ReturnType<typeof openPart>>

/**
 * Opens the unfinished file, cut to its last whole piece, or begins a new one.
 * @param force discards the unfinished file of another source
 * @throws {Failure} if there is another's unfinished file
 */
export async function openPart(
  out: string,
  source: PullSource,
  force: boolean,
  compression: Compression | undefined,
) {
  const path = partOf(out)
  const size = (await ifThere(stat(path)))?.size
  // A kill just after the rename leaves the state alone.
  const left = size === undefined ? undefined : await stateToContinue(out, source, force)
  if (left === undefined && size !== undefined && !force)
    throw localFailure(
      `${path} exists, and is not an unfinished pull`,
      'Move it away, choose another --out, or give --force to replace it.',
    )
  // A crash of the machine may have kept the state and lost the end of the file.
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
    /** How far the file is. */
    reached: () => checkpoint,

    /** Writes the content from there on. */
    write: () => createPieceWriter(file, compression, checkpoint, record),

    /** Empties the file. */
    async restart(): Promise<void> {
      await record(beginning)
      await file.truncate(0)
    },

    /** Removes the files of a pull that has written nothing, because the service refused it, for example. */
    async removeEmpty(): Promise<void> {
      if (checkpoint.etag === '') for (const each of [path, stateFileOf(out)]) await rm(each, { force: true })
    },

    /** Gives the whole file its name, once it is on the disk. @returns its bytes */
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

/** @returns undefined if this pull begins again */
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
  // Killed before its first piece: there is nothing to lose.
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

/** Content bytes of a piece, at least. A kill loses no more, and larger pieces compress no better. */
const pieceBytes = 1024 * 1024
/** Pieces that are compressed or written at once. Each takes its bytes twice. */
const piecesAtOnceMax = 4

/** The last row of a piece, and the state of the ledger in which it is. */
type RowMark = Omit<Checkpoint, 'contentBytes' | 'fileBytes'>

/**
 * Writes chunks in pieces of some MB, each compressed as a whole, several at once, and written in order.
 * @param record called after each piece that was written
 */
function createPieceWriter(
  file: FileHandle,
  compression: Compression | undefined,
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
    // Those who await a later piece, or the end, get the error.
    written.catch(() => {})
    running.push(written)
  }

  return {
    /** Bytes taken so far, before compression. */
    contentBytes: () => contentBytes,

    /** @param mark names the last row of the chunk; called if a piece ends with it */
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
      // A compressed file without any piece could not be decompressed.
      if (waitingBytes > 0 || contentBytes === 0) endPiece(mark)
      await written
    },

    /** Waits for the pieces that are on their way, whether or not they arrive. */
    arrived: (): Promise<void> => written.catch(() => {}),
  }
}

/** @returns bytes written @throws the error of the system if not all can be written */
async function writeAll(file: FileHandle, chunks: Uint8Array[], position: number): Promise<number> {
  const bytes = chunks.reduce((sum, { length }) => sum + length, 0)
  if (bytes === 0) return 0
  let { bytesWritten: done } = await file.writev(chunks, position)
  if (done === bytes) return bytes
  // A full disk takes a part of the bytes, and fails at the next write.
  const all = Buffer.concat(chunks)
  while (done < bytes) done += (await file.write(all, done, bytes - done, position + done)).bytesWritten
  return bytes
}

/** How a file is compressed, which its name says: `.gz`, `.zst`, or neither. */
export interface Compression {
  /** One piece of the file: a gzip member or a zstd frame. Pieces one after the other are a valid file. */
  pack(content: Uint8Array): Promise<Uint8Array>
  unpack(): Transform
}

/** Larger buffers than those of Node save a quarter of the time. */
const readBytes = 1024 * 1024
const chunkSize = 256 * 1024

export function compressionNamed(path: string): 'gzip' | 'zstd' | undefined {
  if (path.endsWith('.gz')) return 'gzip'
  return path.endsWith('.zst') ? 'zstd' : undefined
}

/** @throws {Failure} if the name ends in .zst, and this Node has no zstd */
export function compressionOf(path: string): Compression | undefined {
  const name = compressionNamed(path)
  if (name === undefined) return undefined
  if (name === 'gzip')
    return {
      pack: promisify<zlib.InputType, Buffer>(zlib.gzip),
      unpack: () => zlib.createGunzip({ chunkSize }),
    }
  const zstdCompress = zlib.zstdCompress as typeof zlib.zstdCompress | undefined
  if (zstdCompress === undefined)
    throw localFailure(
      `Node ${process.versions.node} has no zstd, which ${path} needs`,
      'Use Node 22.15 or newer (23.8 in the 23 line), or let the name end in .gz.',
    )
  return {
    pack: promisify<zlib.InputType, Buffer>(zstdCompress),
    unpack: () => zlib.createZstdDecompress({ chunkSize }),
  }
}

/** The content of a file, decompressed, chunk by chunk. */
export function contentOf(path: string, compression: Compression | undefined): AsyncIterable<Uint8Array> {
  const file = createReadStream(path, { highWaterMark: readBytes })
  if (compression === undefined) return file
  // An error of the file destroys the decompression, whose reader then gets it.
  return pipeline(file, compression.unpack(), new PassThrough(), () => {})
}
