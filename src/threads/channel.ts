/**
 * Sends bytes from a thread to the main thread, with backpressure.
 *
 * A MessagePort has no backpressure: a fast writer would queue the whole export in memory. So the reader grants credit
 * in bytes: first a window, then as much as it consumes. The writer waits when its credit is used up. Chunks are
 * transferred, not copied.
 *
 * - thread to main: head (once, first), any number of chunks, then end or error (once)
 * - main to thread: credit, any number of times
 *
 * Credit returns the buffers of chunks that the socket has sent. Without that, the garbage of both threads grew to 150
 * MB before V8 collected it, because a chunk takes only a few dozen bytes of the heap.
 *
 * If the body has a digest, a hash thread (hash-thread.ts) lies between the two: it passes every message on, and adds
 * the SHA-256 of the chunks to the end. Neither side notices.
 *
 * Buffers that are left when an export ends are kept for the next export. Without that, exports of 2,000 movements,
 * with seven new chunks each, made the thread collect all its garbage after every fifth export: a quarter of their
 * processor time.
 *
 * A port that closes without end or error is a failure: a thread died. The reader closes the port to cancel.
 *
 * A full export has no channel: its bytes go from the thread to the store. Its port carries one message, stop, and its
 * progress is in shared memory (jobs/folder-thread.ts).
 */
import { strict as assert } from 'node:assert'
import { createHash } from 'node:crypto'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { limits } from '../config.ts'
import { AppError } from '../errors.ts'

/** Buffers of four megabytes in all: two windows. */
const spareBuffersMax = 16

export type FromThread<Head, Summary> =
  | { kind: 'head'; head: Head }
  | { kind: 'chunk'; bytes: Uint8Array<ArrayBuffer> }
  | { kind: 'end'; summary: Summary; buffers: ArrayBuffer[] }
  | { kind: 'error'; error: ThreadError }

/** The parts of an error that can be sent: a MessagePort loses the class and the cause. */
interface ThreadError {
  /** Undefined if the error is no AppError. */
  known: Pick<AppError, 'code' | 'headers' | 'issues' | 'producerIds' | 'missing'> | undefined
  message: string
  stack: string
}

interface Credit {
  bytes: number
  buffers: ArrayBuffer[]
}

/** The side of the channel in the export thread. */
export class ChannelWriter<Head, Summary> {
  /** Aborted when the port closes: the reader cancelled, or a thread died. */
  readonly signal: AbortSignal
  sentBytes = 0
  readonly #port: MessagePort
  readonly #cancel = new AbortController()
  #creditBytes: number
  #creditCame: (() => void) | undefined
  readonly #buffers: ArrayBuffer[]

  /** @param buffers recycled buffers for the first chunks */
  constructor(port: MessagePort, windowBytes: number, buffers: ArrayBuffer[] = []) {
    this.#buffers = buffers
    this.signal = this.#cancel.signal
    this.#port = port
    this.#creditBytes = windowBytes
    port.on('message', ({ bytes, buffers: returned }: Credit) => {
      this.#creditBytes += bytes
      this.#buffers.push(...returned)
      this.#creditCame?.()
    })
    port.on('close', () => {
      this.#cancel.abort(new Error('the export was cancelled, or the thread that reads it died'))
      this.#creditCame?.()
    })
  }

  head(head: Head): void {
    this.#post({ kind: 'head', head })
  }

  /** Returns a buffer for a chunk: a recycled or a new one. */
  buffer(bytes: number): Uint8Array<ArrayBuffer> {
    const buffer = this.#buffers.pop()
    return buffer && buffer.byteLength >= bytes ? new Uint8Array(buffer, 0, bytes) : new Uint8Array(bytes)
  }

  /** Transfers a chunk with its buffer; resolves when there is credit for another chunk. Rejects after a cancel. */
  async write(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    this.signal.throwIfAborted()
    this.#creditBytes -= bytes.byteLength
    this.sentBytes += bytes.byteLength
    this.#port.postMessage({ kind: 'chunk', bytes } satisfies FromThread<Head, Summary>, [bytes.buffer])
    while (this.#creditBytes <= 0 && !this.signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#creditCame = resolve
      })
    }
    this.signal.throwIfAborted()
  }

  end(summary: Summary): void {
    this.#post({ kind: 'end', summary, buffers: this.#buffers }, this.#buffers)
    this.#port.close()
  }

  fail(error: unknown): void {
    this.#post({ kind: 'error', error: fromError(error) })
    this.#port.close()
  }

  #post(message: FromThread<Head, Summary>, transfer: ArrayBuffer[] = []): void {
    this.#port.postMessage(message, transfer)
  }
}

/** Buffers of sent chunks, for the next channel. */
const spareBuffers: ArrayBuffer[] = []

/**
 * Keeps a buffer for the next export if it has the usual size. One of many megabytes, for a single large item, would
 * never be freed.
 */
function keepBuffer(buffer: ArrayBuffer): void {
  if (spareBuffers.length < spareBuffersMax && buffer.byteLength === limits.chunkBytes)
    spareBuffers.push(buffer)
}

/** Takes kept buffers, at most as many as fill the window of a channel, to be transferred to the channel's writer. */
export function reuseBuffers(): ArrayBuffer[] {
  return spareBuffers.splice(0, limits.channelWindowBytes / limits.chunkBytes)
}

/** The side of the channel in the main thread. */
export class ChannelReader<Head, Summary> {
  /** The thread's end of the port, to be transferred to it. */
  readonly threadPort: MessagePort
  /** Set once `read()` has returned undefined. */
  summary: Summary | undefined
  cancelled = false
  readonly #port: MessagePort
  readonly #chunks: Uint8Array<ArrayBuffer>[] = []
  /** Buffers to return with the next credit. */
  #sent: ArrayBuffer[] = []
  #head: Head | undefined
  #error: Error | undefined
  #ended = false
  #wake: (() => void) | undefined

  constructor() {
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    this.threadPort = port2
    port1.on('message', (message: FromThread<Head, Summary>) => this.#receive(message))
    port1.on('close', () => this.fail(new Error('the export thread ended without finishing')))
  }

  /** The head, which the thread sends before the first byte. Rejects with the thread's error if it fails first. */
  async head(): Promise<Head> {
    while (this.#head === undefined && this.#error === undefined) await this.#message()
    if (this.#error) throw this.#error
    return this.#head!
  }

  /**
   * The next chunk; undefined at the end. Rejects with the thread's error. Reading a chunk grants the thread credit for
   * as many bytes.
   */
  async read(): Promise<Uint8Array | undefined> {
    while (this.#chunks.length === 0 && !this.#ended && this.#error === undefined) await this.#message()
    // An error comes before chunks that are still buffered: the transfer is broken anyway.
    if (this.#error) throw this.#error
    const bytes = this.#chunks.shift()
    if (bytes && !this.#ended) {
      const credit: Credit = { bytes: bytes.byteLength, buffers: this.#sent }
      this.#port.postMessage(credit, credit.buffers)
      this.#sent = []
    }
    return bytes
  }

  /**
   * Returns the buffer of a chunk to the thread with the next credit, or keeps it for the next export. Only for a chunk
   * that is no longer read: its buffer is overwritten.
   */
  recycle(bytes: Uint8Array): void {
    if (this.#error || !(bytes.buffer instanceof ArrayBuffer)) return
    if (this.#ended) keepBuffer(bytes.buffer)
    else this.#sent.push(bytes.buffer)
  }

  /** Makes the thread stop. `read()` rejects from now on. */
  cancel(): void {
    if (this.#ended || this.#error) return
    this.cancelled = true
    this.fail(new Error('the export was cancelled'))
  }

  /** Calls `run` once nothing more can come from the thread. */
  whenClosed(run: () => void): void {
    this.#port.on('close', run)
  }

  /** Fails the channel because the thread could not start or has died. Only the first error counts. */
  fail(error: Error): void {
    if (this.#ended || this.#error) return
    this.#error = error
    this.#chunks.length = 0
    // Ends the thread's work. It also closes the port if no thread ever received the other end: nothing else would.
    this.#port.close()
    this.#wake?.()
  }

  #receive(message: FromThread<Head, Summary>): void {
    switch (message.kind) {
      case 'head':
        this.#head = message.head
        break
      case 'chunk':
        assert(!this.#ended, 'a chunk came after the end')
        if (!this.#error) this.#chunks.push(message.bytes)
        break
      case 'end':
        this.summary = message.summary
        this.#ended = true
        ;[...this.#sent, ...message.buffers].forEach(keepBuffer)
        break
      case 'error':
        this.fail(toError(message.error))
        break
    }
    this.#wake?.()
  }

  #message(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }
}

function fromError(error: unknown): ThreadError {
  const thrown = error instanceof Error ? error : new Error(String(error))
  const sent = { known: undefined, message: thrown.message, stack: stackOf(thrown) }
  if (!(error instanceof AppError)) return sent
  const { code, headers, issues, producerIds, missing } = error
  return { ...sent, known: { code, headers, issues, producerIds, missing } }
}

/**
 * The stack of an error with its codes and causes, for the log only. Leaves out the other properties of database
 * errors, because they quote rows.
 */
function stackOf(error: Error): string {
  const code = 'code' in error ? `\n    code ${error.code}` : ''
  const cause = error.cause instanceof Error ? `\n  caused by ${stackOf(error.cause)}` : ''
  return `${error.stack}${code}${cause}`
}

function toError({ known, message, stack }: ThreadError): Error {
  const error = known ? new AppError(known.code, { ...known, message }) : new Error(message)
  error.stack = stack
  return error
}

/** SHA-256 of the chunks of an export, in a hash thread. */
export interface HashTask {
  /** Port that the messages of a ChannelWriter or a ThreadHash come from. */
  from: MessagePort
  /** Port that messages go to and credit comes from. If absent, messages go back through `from`. */
  to?: MessagePort
}

/**
 * Passes messages on, and adds the digest to the end. Resolves when one side has closed its port, after closing the
 * other.
 */
export function hashChunks({ from, to = from }: HashTask): Promise<void> {
  const hash = createHash('sha256')
  from.on('message', (message: FromThread<unknown, object>) => {
    switch (message.kind) {
      case 'chunk':
        hash.update(message.bytes)
        to.postMessage(message, [message.bytes.buffer])
        break
      case 'end': {
        const summary = { ...message.summary, sha256: hash.digest('hex') }
        to.postMessage({ ...message, summary }, message.buffers)
        break
      }
      default:
        to.postMessage(message)
    }
  })
  if (to !== from) {
    to.on('message', (credit: Credit) => from.postMessage(credit, credit.buffers))
    to.on('close', () => from.close())
  }
  return new Promise((resolve) => {
    from.on('close', () => {
      to.close()
      resolve()
    })
  })
}
