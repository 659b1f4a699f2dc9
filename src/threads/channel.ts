/**
 * Bytes from a thread to the main thread, with backpressure.
 *
 * A MessagePort has none of its own: a fast writer would queue the whole export in memory. So the reader grants
 * credit in bytes, first a window, then what it has consumed; the writer waits when its credit is used up. Chunks
 * are transferred, not copied.
 *
 *   thread -> main   head (once, first), chunk*, then end or error (once)
 *   main -> thread   credit*, buffer*, cancel (at most once)
 *
 * `buffer` gives a chunk's buffer back once the socket is done with it. Without that, garbage of both threads grew to
 * 150 MB before V8 saw a reason to collect it: to the heap, a chunk is a few dozen bytes.
 *
 * What is left of them when an export ends is kept for the next one: exports of 2,000 movements, each with seven chunks of
 * its own, made the thread collect all its garbage every fifth time (a quarter of the processor they took).
 *
 * A port that closes without end or error is a failure: the thread died.
 *
 * A full export has no channel: its bytes go from the thread to the store. Its port carries one message, to stop, and
 * how far it is stands in shared memory (jobs/folder-thread.ts).
 */
import { strict as assert } from 'node:assert'
import type { MessagePort } from 'node:worker_threads'
import { MessageChannel } from 'node:worker_threads'
import { limits } from '../config.ts'
import type { ErrorCode, Issue } from '../errors.ts'
import { AppError } from '../errors.ts'

/** Four megabytes: two windows. */
const keptBuffersMax = 16

type FromThread<Head, Summary> =
  | { kind: 'head'; head: Head }
  | { kind: 'chunk'; bytes: Uint8Array }
  | { kind: 'end'; summary: Summary; buffers: ArrayBuffer[] }
  | { kind: 'error'; error: ThreadError }

/** What of an error crosses over: class and cause do not survive a MessagePort. */
interface ThreadError {
  code: ErrorCode | undefined
  headers: Record<string, string>
  issues: Issue[] | undefined
  missing: string | undefined
  message: string
  stack: string
}

type FromMain =
  | { kind: 'credit'; bytes: number }
  | { kind: 'buffer'; buffer: ArrayBuffer }
  | { kind: 'cancel' }

/** The thread's end. */
export class ChannelWriter<Head, Summary> {
  /** Aborted when the reader cancels or goes away. */
  readonly signal: AbortSignal
  readonly #port: MessagePort
  readonly #cancel = new AbortController()
  #creditBytes: number
  #creditCame: (() => void) | undefined
  readonly #buffers: ArrayBuffer[]

  /** @param buffers for its first chunks */
  constructor(port: MessagePort, windowBytes: number, buffers: ArrayBuffer[] = []) {
    this.#buffers = buffers
    this.signal = this.#cancel.signal
    this.#port = port
    this.#creditBytes = windowBytes
    port.on('message', (message: FromMain) => {
      if (message.kind === 'cancel') this.#cancel.abort(new Error('the reader cancelled'))
      else if (message.kind === 'credit') this.#creditBytes += message.bytes
      else this.#buffers.push(message.buffer)
      this.#creditCame?.()
    })
    port.on('close', () => {
      this.#cancel.abort(new Error('the reader went away'))
      this.#creditCame?.()
    })
  }

  head(head: Head): void {
    this.#post({ kind: 'head', head })
  }

  /** A buffer for a chunk: one that came back, or a new one. */
  buffer(bytes: number): Uint8Array<ArrayBuffer> {
    const buffer = this.#buffers.pop()
    return buffer && buffer.byteLength >= bytes ? new Uint8Array(buffer, 0, bytes) : new Uint8Array(bytes)
  }

  /** Hands a chunk over, buffer and all; resolves when there is credit for another. Rejects after a cancel. */
  async write(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    this.signal.throwIfAborted()
    this.#creditBytes -= bytes.byteLength
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

/** Of chunks that have been sent, for the next channel. */
const keptBuffers: ArrayBuffer[] = []

function keepBuffer(buffer: ArrayBuffer): void {
  if (keptBuffers.length < keptBuffersMax && buffer.byteLength >= limits.chunkBytes) keptBuffers.push(buffer)
}

/** As many as fill the window of a channel; to be transferred to its writer. */
export function takeKeptBuffers(): ArrayBuffer[] {
  return keptBuffers.splice(0, limits.channelWindowBytes / limits.chunkBytes)
}

/** The main thread's end. */
export class ChannelReader<Head, Summary> {
  /** For the thread; transfer it. */
  readonly threadPort: MessagePort
  /** Set once `read()` has returned undefined. */
  summary: Summary | undefined
  cancelled = false
  readonly #port: MessagePort
  readonly #chunks: Uint8Array[] = []
  #head: Head | undefined
  #error: Error | undefined
  #ended = false
  #wake: (() => void) | undefined

  constructor() {
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    this.threadPort = port2
    port1.on('message', (message: FromThread<Head, Summary>) => this.#take(message))
    port1.on('close', () => this.fail(new Error('the export thread ended without finishing')))
  }

  /** What the thread tells before the first byte. Rejects with its error if there is none. */
  async head(): Promise<Head> {
    while (this.#head === undefined && this.#error === undefined) await this.#message()
    if (this.#error) throw this.#error
    return this.#head!
  }

  /** The next chunk, undefined at the end. Rejects with the thread's error. Reading grants credit for one more. */
  async read(): Promise<Uint8Array | undefined> {
    while (this.#chunks.length === 0 && !this.#ended && this.#error === undefined) await this.#message()
    // An error overtakes chunks that wait: the transfer is broken anyway.
    if (this.#error) throw this.#error
    const bytes = this.#chunks.shift()
    if (bytes && !this.#ended) {
      this.#port.postMessage({ kind: 'credit', bytes: bytes.byteLength } satisfies FromMain)
    }
    return bytes
  }

  /**
   * Gives the buffer of a chunk back to the thread, or keeps it for the next export. Only for a chunk that nobody reads
   * any more: it is overwritten.
   */
  giveBack(bytes: Uint8Array): void {
    if (this.#error || !(bytes.buffer instanceof ArrayBuffer)) return
    const { buffer } = bytes
    if (this.#ended) keepBuffer(buffer)
    else this.#port.postMessage({ kind: 'buffer', buffer } satisfies FromMain, [buffer])
  }

  /** Tells the thread to stop. `read()` rejects from now on. */
  cancel(): void {
    if (this.#ended || this.#error) return
    this.cancelled = true
    this.#port.postMessage({ kind: 'cancel' } satisfies FromMain)
    // Where no thread has taken it, the message in it would keep it open. What was transferred is not closed by this.
    this.threadPort.close()
    this.fail(new Error('the export was cancelled'))
  }

  /** Ends the channel from outside, when the thread could not be started or died. The first error counts. */
  fail(error: Error): void {
    if (this.#ended || this.#error) return
    this.#error = error
    this.#chunks.length = 0
    // Where no thread has taken the other end, nobody else would ever close it.
    this.#port.close()
    this.#wake?.()
  }

  #take(message: FromThread<Head, Summary>): void {
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
        message.buffers.forEach(keepBuffer)
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
  const known = error instanceof AppError
  return {
    code: known ? error.code : undefined,
    headers: known ? error.headers : {},
    issues: known ? error.issues : undefined,
    missing: known ? error.missing : undefined,
    message: thrown.message,
    stack: stackOf(thrown),
  }
}

/** With codes and causes: the log is the only place where they are read. Other properties of the database quote rows. */
function stackOf(error: Error): string {
  const code = 'code' in error ? `\n    code ${error.code}` : ''
  const cause = error.cause instanceof Error ? `\n  caused by ${stackOf(error.cause)}` : ''
  return `${error.stack}${code}${cause}`
}

function toError({ code, headers, issues, missing, message, stack }: ThreadError): Error {
  const error = code
    ? new AppError(code, { message, headers, missing, ...(issues ? { issues } : {}) })
    : new Error(message)
  error.stack = stack
  return error
}
