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

export class PieceWriter {
  readonly #file: FileHandle
  readonly #compression: Compression
  /** Records a piece that was written. */
  readonly #onPiece: (checkpoint: Checkpoint) => Promise<void>
  #chunks: Uint8Array[] = []
  /** Bytes taken so far, before compression. */
  contentBytes: number
  #pieceBytes = 0
  #fileBytes: number
  /** Settles when all pieces so far are written. */
  #written: Promise<void> = Promise.resolve()
  #running: Promise<void>[] = []

  constructor(
    file: FileHandle,
    compression: Compression,
    start: Checkpoint,
    onPiece: (checkpoint: Checkpoint) => Promise<void>,
  ) {
    this.#file = file
    this.#compression = compression
    this.#onPiece = onPiece
    this.contentBytes = start.contentBytes
    this.#fileBytes = start.fileBytes
  }

  /** @param mark names the last row of the chunk; called if a piece ends with it */
  async add(chunk: Uint8Array, mark: () => Pick<Checkpoint, 'rows' | 'after'>): Promise<void> {
    this.#chunks.push(chunk)
    this.#pieceBytes += chunk.length
    this.contentBytes += chunk.length
    if (this.#pieceBytes < pieceBytes) return
    this.#endPiece(mark())
    if (this.#running.length >= piecesAtOnceMax) await this.#running.shift()
  }

  /** Writes the rest. */
  async end(mark: Pick<Checkpoint, 'rows' | 'after'>): Promise<void> {
    // A compressed file without any piece could not be decompressed.
    if (this.#pieceBytes > 0 || this.contentBytes === 0) this.#endPiece(mark)
    await this.#written
  }

  /** Waits for the pieces that are on their way, whether or not they arrive. */
  async settle(): Promise<void> {
    await this.#written.catch(() => {})
  }

  #endPiece(mark: Pick<Checkpoint, 'rows' | 'after'>): void {
    const chunks = this.#chunks
    const { contentBytes } = this
    this.#chunks = []
    this.#pieceBytes = 0
    const packed =
      this.#compression.name === 'none'
        ? Promise.resolve(chunks)
        : this.#compression.pack(Buffer.concat(chunks)).then((piece) => [piece])
    const before = this.#written
    this.#written = this.#inOrder(before, packed, { ...mark, contentBytes })
    // Those who await a later piece, or the end, get the error.
    this.#written.catch(() => {})
    this.#running.push(this.#written)
  }

  async #inOrder(
    before: Promise<void>,
    packed: Promise<Uint8Array[]>,
    mark: Omit<Checkpoint, 'fileBytes'>,
  ): Promise<void> {
    const [, piece] = await Promise.all([before, packed])
    this.#fileBytes += await writeAll(this.#file, piece, this.#fileBytes)
    await this.#onPiece({ ...mark, fileBytes: this.#fileBytes })
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
