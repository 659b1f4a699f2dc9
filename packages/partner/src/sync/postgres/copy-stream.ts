/**
 * Moves the bytes of `COPY ... FROM STDIN` and `COPY ... TO STDOUT` around the package pg, which would copy each buffer
 * that is sent and make an object of each row that is received. Both classes use the socket of pg's connection while
 * the statement runs.
 */
import { strict as assert } from 'node:assert'
import type { Socket } from 'node:net'

type Connection = import('pg').Connection
type Client = import('pg').Client

const copyData = 0x64 // d
const copyDone = 0x63 // c
const errorResponse = 0x45 // E
const frameHeadBytes = 5 // a code, and a length of four bytes that counts itself

const copyDoneFrame = Buffer.of(copyDone, 0, 0, 0, 4)
/** Ends a COPY without success. The reason in the frame is an empty text. */
const copyFailFrame = Buffer.of(0x66, 0, 0, 0, 5, 0)

/** The methods that pg calls while a statement runs. */
abstract class Statement {
  /** Resolves with the number of rows when the connection is ready for the next statement. */
  readonly ended: Promise<number>
  protected connection: Connection | undefined
  readonly #text: string
  #rows = 0
  #resolve!: (rows: number) => void
  #reject!: (error: Error) => void

  constructor(text: string) {
    this.#text = text
    this.ended = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    // If the promise rejects before anybody waits for it, the process must not end.
    this.ended.catch(() => {})
  }

  protected get socket(): Socket {
    return this.connection!.stream as Socket
  }

  submit(connection: Connection): void {
    this.connection = connection
    connection.query(this.#text)
  }

  handleError(error: Error): void {
    this.#reject(error)
  }

  handleCommandComplete({ text }: { text: string }): void {
    this.#rows = Number(text.split(' ')[1])
  }

  handleReadyForQuery(): void {
    this.#resolve(this.#rows)
  }
}

/**
 * Sends lines to a statement `COPY ... FROM STDIN`. The lines follow the statement at once: if the database refuses the
 * statement, it ignores them.
 */
export class CopyIn extends Statement {
  static async begin(client: Client, text: string): Promise<CopyIn> {
    const copy = new CopyIn(text)
    client.query(copy as never)
    // No other statement of the client is running, so pg submits this one at once, unless the connection is lost.
    if (!copy.connection) await copy.ended
    return copy
  }

  /** Resolves when the caller may reuse the bytes. The database may still refuse them later. */
  async write(lines: Uint8Array): Promise<void> {
    const head = Buffer.allocUnsafe(frameHeadBytes)
    head[0] = copyData
    head.writeInt32BE(lines.length + 4, 1)
    const { socket } = this
    // Corked, so that both parts go out in one system call and without a copy.
    socket.cork()
    socket.write(head)
    const isSent = new Promise<void>((resolve, reject) => {
      socket.write(lines, (error) => (error ? reject(error) : resolve()))
    })
    socket.uncork()
    // A database that refuses a line reports it at once, and then reads the rest without looking at it.
    await Promise.all([isSent, Promise.race([isSent, this.ended])])
  }

  /** Completes the COPY. @returns how many rows the database took */
  async end(): Promise<number> {
    this.socket.write(copyDoneFrame)
    return this.ended
  }

  /** Ends the COPY so that the database keeps none of the rows. */
  async fail(): Promise<void> {
    this.socket.write(copyFailFrame)
    await this.ended.catch(() => {})
  }

  handleCopyInResponse(): void {}
}

/** Size of the buffers in which rows are gathered. A longer row gets a buffer of its own. */
const bufferBytes = 256 * 1024
/** Most buffers that may wait for their reader. Beyond that the socket pauses. */
const waitingMax = 4

/** Reads the lines that `COPY ... TO STDOUT` sends. The database sends each row in a frame of its own. */
export class CopyOut extends Statement {
  #pgReader!: (chunk: Buffer) => void
  readonly #head = Buffer.alloc(frameHeadBytes)
  #headFilled = 0
  /** Bytes of the current frame that are still to come. */
  #left = 0
  #isRow = false
  #buffer = Buffer.allocUnsafeSlow(bufferBytes)
  #filled = 0
  readonly #waiting: Buffer[] = []
  #isOver = false
  #isLeft = false
  #wake = (): void => {}

  /** Chunks of many whole lines. Rejects if the database or the connection fails. */
  static async *lines(client: Client, text: string): AsyncGenerator<Buffer, void, undefined> {
    const copy = new CopyOut(text)
    client.query(copy as never)
    const over = () => {
      copy.#isOver = true
      copy.#wake()
    }
    copy.ended.then(over, over)
    try {
      for (;;) {
        const lines = copy.#waiting.shift()
        if (lines) {
          if (copy.#waiting.length < waitingMax) copy.socket.resume()
          yield lines
        } else if (copy.#isOver) break
        else
          await new Promise<void>((resolve) => {
            copy.#wake = resolve
          })
      }
      await copy.ended
      if (copy.#filled > 0) yield copy.#buffer.subarray(0, copy.#filled)
    } finally {
      // If the reader left early, the connection can be used again once the remaining rows have passed.
      copy.#isLeft = true
      copy.socket.resume()
      await copy.ended.catch(() => {})
    }
  }

  override submit(connection: Connection): void {
    super.submit(connection)
    const listeners = this.socket.listeners('data')
    assert(listeners.length === 1, 'pg has one reader on its socket')
    this.#pgReader = listeners[0] as (chunk: Buffer) => void
    this.socket.removeListener('data', this.#pgReader)
    this.socket.on('data', this.#receive)
  }

  /** Keeps rows and passes every other message to pg. After the last row pg gets its socket back. */
  #receive = (chunk: Buffer): void => {
    let at = 0
    while (at < chunk.length) {
      if (this.#left === 0) {
        const end = Math.min(chunk.length, at + frameHeadBytes - this.#headFilled)
        this.#headFilled += chunk.copy(this.#head, this.#headFilled, at, end)
        at = end
        if (this.#headFilled < frameHeadBytes) return
        const code = this.#head[0]
        this.#left = this.#head.readInt32BE(1) - 4
        this.#headFilled = 0
        this.#isRow = code === copyData
        if (this.#isRow) this.#makeRoom(this.#left)
        else this.#pgReader(Buffer.from(this.#head))
        if (code === copyDone || code === errorResponse) {
          this.#giveBack(chunk.subarray(at))
          return
        }
      }
      const end = Math.min(chunk.length, at + this.#left)
      if (this.#isRow) this.#filled += chunk.copy(this.#buffer, this.#filled, at, end)
      else if (end > at) this.#pgReader(chunk.subarray(at, end))
      this.#left -= end - at
      at = end
    }
  }

  #makeRoom(bytes: number): void {
    if (this.#filled + bytes <= this.#buffer.length) return
    if (this.#filled > 0 && !this.#isLeft) this.#waiting.push(this.#buffer.subarray(0, this.#filled))
    this.#buffer = Buffer.allocUnsafeSlow(Math.max(bytes, bufferBytes))
    this.#filled = 0
    if (this.#waiting.length >= waitingMax) this.socket.pause()
    this.#wake()
  }

  #giveBack(rest: Buffer): void {
    this.socket.removeListener('data', this.#receive)
    this.socket.on('data', this.#pgReader)
    if (rest.length > 0) this.#pgReader(rest)
    this.socket.resume()
  }
}
