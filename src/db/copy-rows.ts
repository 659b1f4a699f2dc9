/**
 * Reads rows of `COPY (...) TO STDOUT` as byte ranges, without decoding them.
 *
 * It scans the bytes of the socket once: CopyData frames (one per row) mark the rows, tabs the fields. The result is a
 * batch: `bytes`, and `fields` with the offset of every field of every row. A reader copies all bytes that arrive into
 * one buffer. Letting sockets read directly into our own buffer (`onread`) saved 1 % of the processor time of
 * movements: too little to keep a second way of reading beside the one that TLS needs.
 *
 * pg-copy-streams gives the same bytes with five calls and a slice per row, without field positions: 600,000 movements
 * took 1.9 times as long, even before searching for tabs. Like pg-copy-streams, this takes the place of pg's data
 * listener while rows arrive, and passes everything else to pg.
 */

import { strict as assert } from 'node:assert'
import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import type pg from 'pg'
import { Rows } from '../formats/text-bytes.ts'

/** The most bytes that one read of a socket brings. The socket is paused while its reader has less room than that. */
const readBytesMax = 64 * 1024

/** Room for a few reads. Longer rows get a larger buffer, for as long as the export lasts. */
const bufferBytes = 256 * 1024

/** Functions that copy eight bytes at once read up to seven bytes after the last row. */
const bytesAfter = 8

const copyData = 0x64 // d
const copyDone = 0x63 // c
const errorResponse = 0x45 // E
const frameHeadBytes = 5 // a code and a length of four bytes that counts itself

const tab = 9

/**
 * Arrays of readers, for reuse. To V8 such an array is a few dozen bytes of heap with much external memory, which triggers
 * garbage collection: new ones for every export of 2,000 movements caused a third of all full collections.
 */
const keptArrays: { buffer: Uint8Array<ArrayBuffer>; fields: Int32Array<ArrayBuffer> }[] = []
/** Most entries of `keptArrays`: two for each concurrent export of a thread. */
const keptArraysMax = 16
/** Length of the longest array of fields that is kept (256 KB). Rows of few bytes need longer ones. */
const keptFieldsLengthMax = 65_536

type SocketReader = (chunk: Buffer) => void

/** Rows of COPY statements, batch by batch. A batch is valid until the next `fill()`. */
export class CopyRows extends Rows implements pg.Submittable {
  readonly stride: number
  /** Rows in the batch: row r begins at `r * stride` in `fields`. */
  count = 0

  readonly #texts: readonly string[]
  /** Statements whose rows have not all arrived yet. */
  #statements: number
  #connection: pg.Connection | undefined
  #pgReader: SocketReader | undefined
  /**
   * Arriving bytes are appended to this buffer; the bytes from `#unread` to `#filled` are not yet part of any batch.
   */
  #buffer: Uint8Array<ArrayBuffer>
  #unread = 0
  #filled = 0
  /** Whether bytes have arrived since the last batch. */
  #arrived = false
  #ended = false
  #error: Error | undefined
  #wake: (() => void) | undefined

  /**
   * @param texts complete COPY ... TO STDOUT statements in text format, at least one; their rows follow one another
   * @param fieldCount columns of their rows
   */
  constructor(texts: string | readonly string[], fieldCount: number) {
    const { buffer, fields } = keptArrays.pop() ?? {
      buffer: new Uint8Array(bufferBytes + bytesAfter),
      fields: new Int32Array(4096),
    }
    super(Buffer.alloc(0), new DataView(buffer.buffer), fields)
    this.#texts = [texts].flat()
    this.#statements = this.#texts.length
    this.stride = fieldCount + 1
    this.#buffer = buffer
  }

  /** Moves to the next row of the batch; false after the last row. */
  next(): boolean {
    this.base += this.stride
    return this.base < this.count * this.stride
  }

  /**
   * Reads the next batch and moves to its first row; false at the end. Rejects if the database or the connection fails.
   */
  async fill(): Promise<boolean> {
    this.base = 0
    this.count = 0
    while (this.count === 0) {
      this.#makeRoom()
      while (!this.#arrived && !this.#ended && this.#error === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
      if (this.#error) throw this.#error
      if (this.#ended) return this.#end()
      this.#take()
    }
    return true
  }

  /**
   * Reads the next batch. It begins with the current row and those after it, which are copied from the current batch.
   * Returns false if there are no more rows; the current batch then stays unchanged.
   */
  async extend(): Promise<boolean> {
    assert(this.#texts.length === 1, 'the end of a statement must not be scanned twice')
    if (this.#ended) return false
    this.#unread = this.start(0) - frameHeadBytes
    // Waits, so that the next batch takes all bytes that have arrived: each batch copies and scans the kept rows again.
    // In pieces of 64 KB, 120,000 kept rows (11 MB) took 1.2 s more of processor time.
    await setImmediate()
    return this.fill()
  }

  /** Ends the last batch: its arrays may belong to another export from now on. */
  #end(): false {
    const { length } = this.fields
    const isUsual = this.#buffer.length === bufferBytes + bytesAfter && length <= keptFieldsLengthMax
    if (length > 0 && isUsual && keptArrays.length < keptArraysMax)
      keptArrays.push({ buffer: this.#buffer, fields: this.fields })
    this.fields = new Int32Array()
    return false
  }

  /** Moves the unread bytes to the beginning of the buffer, and reads on if the socket was paused. */
  #makeRoom(): void {
    if (this.#ended) return
    this.#buffer.copyWithin(0, this.#unread, this.#filled)
    this.#filled -= this.#unread
    this.#unread = 0
    if (this.#roomAfter(this.#filled) < readBytesMax) {
      // Bytes that have arrived are read first. The buffer grows only for a row that is longer than it, or for rows
      // that are kept.
      if (this.#arrived) return
      this.#enlarge(readBytesMax)
    }
    const socket = this.#connection?.stream
    // Resumes only a paused socket: each `resume()` takes a turn of the queue of `nextTick`.
    if (socket?.isPaused()) socket.resume()
  }

  #roomAfter(at: number): number {
    return this.#buffer.length - bytesAfter - at
  }

  /** Continues in a larger buffer. The current batch stays valid in the former buffer. */
  #enlarge(room: number): void {
    const larger = new Uint8Array(2 * this.#buffer.length + room)
    larger.set(this.#buffer.subarray(0, this.#filled))
    this.#buffer = larger
  }

  #take(): void {
    this.#arrived = false
    this.bytes = Buffer.from(this.#buffer.buffer, this.#unread, this.#filled - this.#unread)
    this.view = new DataView(this.#buffer.buffer, this.#unread)
    this.#unread += this.#locate()
  }

  /** Finds rows and fields. Returns the offset in the batch at which the first incomplete frame begins. */
  #locate(): number {
    const { bytes, view, stride } = this
    let fields = this.fields
    let filled = 0
    let at = 0
    while (at + frameHeadBytes <= bytes.length) {
      const code = bytes[at]
      // The rows have not ended yet: the error message may still be incomplete, and pg reports it once it is complete.
      if (code === errorResponse) return this.#giveBackFrom(at)
      const end = at + 1 + view.getInt32(at + 1)
      if (code === copyDone && --this.#statements === 0) {
        this.#ended = true
        return this.#giveBackFrom(end)
      }
      if (end > bytes.length) break
      if (code === copyData) {
        if (filled + stride > fields.length) {
          this.fields = new Int32Array(fields.length * 2)
          this.fields.set(fields)
          fields = this.fields
        }
        const first = filled
        fields[filled++] = at + frameHeadBytes
        for (let i = at + frameHeadBytes; i < end; i++) {
          if (bytes[i] === tab) fields[filled++] = i + 1
        }
        fields[filled++] = end
        assert(filled - first === stride, 'a row and its query have different numbers of columns')
        this.count++
      }
      at = end
    }
    return at
  }

  /** After the last row, lets pg read its socket again, beginning with the bytes that were not used here. */
  #giveBackFrom(at: number): number {
    const socket = this.#connection?.stream as Socket
    socket.removeListener('data', this.#receive)
    socket.on('data', this.#pgReader!)
    // pg gets a copy: it keeps what it cannot read yet, and the buffer may soon belong to another export.
    if (at < this.bytes.length) this.#pgReader!(Buffer.from(this.bytes.subarray(at)))
    socket.resume()
    return this.bytes.length
  }

  #receive = (chunk: Uint8Array): void => {
    if (chunk.length > this.#roomAfter(this.#filled)) this.#enlarge(chunk.length)
    this.#buffer.set(chunk, this.#filled)
    this.#filled += chunk.length
    this.#arrived = true
    if (this.#roomAfter(this.#filled) < readBytesMax) this.#connection?.stream.pause()
    this.#wake?.()
  }

  // pg calls the methods below.

  submit(connection: pg.Connection): void {
    const socket = connection.stream as Socket
    const listeners = socket.listeners('data')
    assert(listeners.length === 1, 'pg has one reader on its socket')
    this.#connection = connection
    this.#pgReader = listeners[0] as SocketReader
    socket.removeListener('data', this.#pgReader)
    socket.on('data', this.#receive)
    connection.query(this.#texts.join(';'))
  }

  handleError(error: Error): void {
    this.#error = error
    this.#wake?.()
  }

  handleCommandComplete(): void {}
  handleReadyForQuery(): void {}
}
