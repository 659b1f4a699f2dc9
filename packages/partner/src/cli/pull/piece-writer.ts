/**
 * Writes chunks to a file in pieces of some MB, each compressed as a whole, several at once, and written in order. After
 * each piece the file can be cut there, and continued.
 */
import { Buffer } from 'node:buffer'
import type { FileHandle } from 'node:fs/promises'
import type { Compression } from './compression.ts'

/** How far the file is. */
export interface Checkpoint {
  rows: number
  /** Before compression. */
  contentBytes: number
  fileBytes: number
  /** `producerId` of the last movement; null before the first. */
  after: string | null
}

export const beginning: Checkpoint = { rows: 0, contentBytes: 0, fileBytes: 0, after: null }

/** Content bytes of a piece, at least. What a kill loses; compression ratios no longer grow with it. */
const pieceBytes = 1024 * 1024
/** Pieces that are compressed or written at once. Each takes its bytes twice. */
const piecesAtOnceMax = 4

type RowMark = Pick<Checkpoint, 'rows' | 'after'>

/** @param onPiece records a piece that was written */
export function createPieceWriter(
  file: FileHandle,
  compression: Compression,
  start: Checkpoint,
  onPiece: (checkpoint: Checkpoint) => Promise<void>,
) {
  let { contentBytes, fileBytes } = start
  let waiting: Uint8Array[] = []
  let waitingBytes = 0
  /** Settles when all pieces so far are written. */
  let written: Promise<void> = Promise.resolve()
  const running: Promise<void>[] = []

  const write = async (
    before: Promise<void>,
    packed: Promise<Uint8Array[]>,
    mark: Omit<Checkpoint, 'fileBytes'>,
  ) => {
    const [, piece] = await Promise.all([before, packed])
    fileBytes += await writeAll(file, piece, fileBytes)
    await onPiece({ ...mark, fileBytes })
  }

  const endPiece = (mark: RowMark) => {
    const chunks = waiting
    waiting = []
    waitingBytes = 0
    const packed =
      compression.name === 'none'
        ? Promise.resolve(chunks)
        : compression.pack(Buffer.concat(chunks)).then((piece) => [piece])
    written = write(written, packed, { ...mark, contentBytes })
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
    settle: (): Promise<void> => written.catch(() => {}),
  }
}

/** @returns bytes written @throws the error of the system if not all can be written */
async function writeAll(file: FileHandle, chunks: Uint8Array[], position: number): Promise<number> {
  const bytes = chunks.reduce((sum, { length }) => sum + length, 0)
  if (bytes === 0) return 0
  let { bytesWritten: done } = await file.writev(chunks, position)
  if (done === bytes) return bytes
  // A full disk takes a part first, and says so at the next write.
  const all = Buffer.concat(chunks)
  while (done < bytes) done += (await file.write(all, done, bytes - done, position + done)).bytesWritten
  return bytes
}
