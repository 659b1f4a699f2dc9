/**
 * A stream of movements or entries that ends only when it is whole. If it is cut, it is resumed. If the ledger changes,
 * it begins again. At the end it is proven: by trailers, by digests, or because the service has no further line.
 */
import { BlockCheck, type Blocks, rowsOf } from './blocks.ts'
import { clientError } from './errors.ts'
import type { Answer, Encoding } from './http/answer.ts'
import { cut } from './http/connection.ts'
import { idOf, itemsOf, lastLineOf } from './lines.ts'
import { LedgerChanged, linesOf, proveEnd, throughLosses, throwChanged } from './reader.ts'
import { type QueryValue, type Requests, sendFor } from './requests.ts'
import type { Streamed } from './selection.ts'

export interface StreamOptions {
  /** Ends everything at once with the signal's reason. */
  signal?: AbortSignal | undefined
  /** Compression of the body. Default: zstd if the runtime can read it, otherwise gzip. */
  encoding?: Encoding | undefined
  /** Goes on after the last item of an earlier stream. */
  resume?: ResumePoint | undefined
  /**
   * Called if the ledger changes during the transfer, with the reason: discard everything that this stream gave out,
   * and what came before `resume`. After it returns, the stream begins again at the first line. Without it the stream
   * throws LEDGER-CHANGED.
   */
  onRestart?: ((reason: string) => void | Promise<void>) | undefined
  /**
   * What proves that the stream is whole. `trailers` (the default if the runtime shows them): the row count and SHA-256
   * that follow the last chunk. `blocks` (movements only): digests that are read first, and compared while lines pass.
   */
  proof?: 'trailers' | 'blocks' | undefined
}

export interface ResumePoint {
  /** `producerId` of the last item that was kept. */
  after: string
  /** The `progress.etag` of the first answer. */
  etag: string
  /** Number of items up to `after`, including it. */
  rows: number
}

type Proof = 'trailers' | 'blocks' | 'rows' | 'end'

export interface Progress {
  /** Number of items given out, including those before `resume`. */
  readonly rows: number
  /** Bytes given out, counted after decompression. */
  readonly bytes: number
  /** Bytes of bodies that have arrived over all connections, before decompression. */
  readonly wireBytes: number
  /** Number of answers that this stream has begun to read. */
  readonly connections: number
  /** How often the stream has begun again because the ledger had changed. */
  readonly restarts: number
  readonly etag?: string
  /** Names the state of the ledger that the stream shows. */
  readonly cursor?: string
  /**
   * Undefined until the end.
   * - `trailers`: one answer brought everything, and its trailers had the right row count and SHA-256.
   * - `blocks`: every line was compared with the digests of the ledger.
   * - `rows`: movements came in several parts or without trailers, and their number is that of the blocks. Not every
   *   byte is proven.
   * - `end`: entries came in several parts or without trailers, and the service had nothing after the last entry. Not
   *   every byte is proven.
   */
  readonly provedBy?: Proof
}

/** The items of a selection, in order. They can be read once, as chunks or one by one. */
export interface LedgerStream<Item> extends AsyncIterable<Item> {
  /** Whole NDJSON lines, many at a time, each with its line feed. */
  chunks(): AsyncGenerator<Uint8Array, void, undefined>
  /** Kept up to date while the stream is read. */
  readonly progress: Progress
}

/**
 * Refuses an incomplete `resume`. With it, the stream would begin at the first line, or in another state.
 * @throws {GrandlivreError} INVALID-OPTION
 */
function checkResume({ after, etag, rows }: ResumePoint): void {
  if (!/^\d+$/.test(after)) throw clientError('INVALID-OPTION', 'resume.after is not the id of an item')
  if (typeof etag !== 'string' || etag === '')
    throw clientError('INVALID-OPTION', 'resume.etag is empty: take it from progress.etag')
  if (!(Number.isSafeInteger(rows) && rows > 0))
    throw clientError('INVALID-OPTION', 'resume.rows is not a whole number above 0')
}

/** What a stream reads. */
interface StreamSource {
  streamed: Streamed
  query: Record<string, QueryValue>
  /** Reads the blocks of exactly these lines; for movements only. */
  blocks?: () => Promise<Blocks>
}

const restartsMax = 10
/** Size of a chunk: large enough to be written cheaply, and small in memory. */
const gatherBytes = 256 * 1024
/** How often the blocks and the stream may show different states of the ledger before the stream gives up. */
const pairingsMax = 5

/**
 * Clients whose answers came without trailers, because the runtime or a proxy on the way hides them. Their later
 * streams of movements read blocks first.
 */
const withoutTrailers = new WeakSet<Requests>()

const changedBetween = () => new LedgerChanged('The ledger changed between two parts of the transfer')

export class LedgerTransfer<Item> implements LedgerStream<Item> {
  readonly progress: { -readonly [Name in keyof Progress]: Progress[Name] }
  readonly #requests: Requests
  readonly #source: StreamSource
  readonly #options: StreamOptions
  #isTaken = false
  /** Bytes given out, including those before the stream began again. */
  #reached = 0
  /** The last line that was given out; before the first, the id to resume after. */
  #last: Uint8Array | string | undefined
  #check: BlockCheck | undefined
  /** Number of rows that came before the check began. No digest proves them. */
  #checkedFrom = 0
  /** Number of all rows of the selection, once it is needed. */
  #total: number | undefined

  constructor(requests: Requests, source: StreamSource, options: StreamOptions) {
    const { resume, proof } = options
    if (proof === 'blocks' && !source.blocks)
      throw clientError('INVALID-OPTION', 'proof: blocks exist of movements only; leave it out for entries')
    if (resume) checkResume(resume)
    this.#requests = requests
    this.#source = source
    this.#options = options
    this.#last = resume?.after
    this.progress = { rows: resume?.rows ?? 0, bytes: 0, wireBytes: 0, connections: 0, restarts: 0 }
    if (resume) this.progress.etag = resume.etag
  }

  [Symbol.asyncIterator](): AsyncIterator<Item> {
    return itemsOf<Item>(this.chunks())
  }

  async *chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.#isTaken) throw new TypeError('This stream was read before; begin another one')
    this.#isTaken = true
    const reader = {
      connection: () => this.#untilChanged(),
      reached: () => this.#reached,
      lost: ({ message }: Error) => `The transfer stopped after ${this.progress.rows} rows: ${message}`,
      isResumable: () => this.progress.rows > 0,
    }
    yield* throughLosses(this.#requests, reader, this.#options.signal)
  }

  async *#untilChanged(): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      try {
        return yield* this.#connection()
      } catch (error) {
        if (!(error instanceof LedgerChanged)) throw error
        await this.#restart(error.message)
      }
    }
  }

  /**
   * The lines of one answer. Returns if the whole stream is proven, and throws a loss if something is still to come.
   */
  async *#connection(): AsyncGenerator<Uint8Array, void, undefined> {
    const answer = await this.#open()
    const { progress } = this
    const { rows, wireBytes } = progress
    const isHashed = this.#check === undefined
    const countBytes = () => {
      progress.wireBytes = wireBytes + answer.wireBytes()
    }
    const take = (lines: Uint8Array, count: number) => {
      this.#check?.pass(lines)
      this.#last = lastLineOf(lines)
      this.#reached += lines.length
      progress.rows += count
      progress.bytes += lines.length
      countBytes()
      return lines
    }
    const onMissingTrailer = () => void withoutTrailers.add(this.#requests)
    progress.connections += 1
    try {
      const isCounted = yield* linesOf(answer, { take, isHashed, gatherBytes, onMissingTrailer })
      progress.provedBy = await this.#prove(isCounted, rows)
    } finally {
      countBytes()
    }
  }

  async #open(): Promise<Answer> {
    const { progress } = this
    const after = this.#after()
    for (let pairing = 1; ; pairing += 1) {
      // Blocks are read if they prove the next lines, or for the total number of rows of a stream in several parts.
      const isNeeded = this.#provesByBlocks || (after !== undefined && this.#total === undefined)
      const blocks = isNeeded && !this.#check ? await this.#source.blocks?.() : undefined
      const answer = await this.#send(after)
      const { etag, 'x-ledger-cursor': cursor } = answer.headers
      try {
        if (progress.cursor !== undefined && progress.cursor !== cursor) throw changedBetween()
        if (blocks && blocks.cursor === cursor) this.#compareWith(blocks)
        else if (blocks && this.#provesByBlocks && pairing === pairingsMax)
          throw clientError(
            'LEDGER-CHANGED',
            'The ledger changes too often to read it together with its blocks',
          )
        else if (blocks && this.#provesByBlocks) {
          answer.discard()
          continue
        }
      } catch (error) {
        answer.discard()
        throw error
      }
      if (cursor !== undefined) progress.cursor = cursor
      if (etag !== undefined) progress.etag ??= etag
      return answer
    }
  }

  #compareWith({ blocks }: Blocks): void {
    this.#total = rowsOf(blocks)
    if (!this.#provesByBlocks) return
    this.#checkedFrom = this.progress.rows
    this.#check = new BlockCheck(blocks, this.#checkedFrom)
  }

  get #provesByBlocks(): boolean {
    if (!this.#source.blocks) return false
    return this.#options.proof === 'blocks' || withoutTrailers.has(this.#requests)
  }

  /** The id to resume after. */
  #after(): string | undefined {
    return typeof this.#last === 'object' ? idOf(this.#last) : this.#last
  }

  /** A request for what comes after the last line, in the state that is being read. */
  #request(after: string | undefined, headers: Record<string, string> = {}) {
    const { streamed, query } = this.#source
    const { etag } = this.progress
    const sameState = after !== undefined && etag !== undefined ? { 'If-Match': etag } : {}
    return {
      path: `/mad/${streamed}`,
      query: { ...query, after },
      headers: { ...headers, ...sameState },
      signal: this.#options.signal,
    }
  }

  #send(after: string | undefined): Promise<Answer> {
    const request = this.#request(after, this.#provesByBlocks ? { 'Want-Content-Digest': 'sha-256=0' } : {})
    const asked = sendFor(this.#requests, 'application/x-ndjson', this.#options.encoding, request)
    return asked.catch(throwChanged(changedBetween))
  }

  /**
   * Proves that the stream is whole, after an answer has ended properly.
   * @param isCounted whether the trailers of that answer prove it
   * @param rowsBefore rows of this stream before that answer
   * @throws {unknown} a loss if there is more to come
   */
  async #prove(isCounted: boolean, rowsBefore: number): Promise<Proof> {
    const { rows, cursor } = this.progress
    const isOneAnswer = isCounted && rowsBefore === 0
    if (this.#source.blocks && !isOneAnswer) this.#total ??= await this.#countRows(this.#source.blocks)
    if (this.#total === undefined) {
      if (isOneAnswer) return 'trailers'
      if (!isCounted) await proveEnd(this.#requests, this.#request(this.#after()), cursor, changedBetween)
      return 'end'
    }
    if (rows < this.#total && !isCounted) throw cut('The body ended before the last movement')
    if (rows !== this.#total)
      throw clientError('NOT-PROVEN', `${rows} rows arrived in all parts, and the ledger has ${this.#total}`)
    if (this.#check) return this.#checkedFrom === 0 ? 'blocks' : 'rows'
    return isOneAnswer ? 'trailers' : 'rows'
  }

  async #countRows(readBlocks: () => Promise<Blocks>): Promise<number> {
    const { blocks, cursor } = await readBlocks()
    if (cursor === this.progress.cursor) return rowsOf(blocks)
    throw new LedgerChanged(
      'The answer had no trailers, and the ledger has changed since, so it cannot be proven',
    )
  }

  async #restart(reason: string): Promise<void> {
    const { onRestart } = this.#options
    const { progress } = this
    if (progress.rows > 0 && !onRestart)
      throw clientError('LEDGER-CHANGED', `${reason}, after ${progress.rows} rows`)
    if (progress.restarts >= restartsMax)
      throw clientError('LEDGER-CHANGED', `${reason}, after ${restartsMax} new beginnings`)
    if (progress.rows > 0) await onRestart?.(reason)
    progress.restarts += 1
    progress.rows = 0
    progress.bytes = 0
    delete progress.etag
    delete progress.cursor
    this.#last = undefined
    this.#check = undefined
    this.#total = undefined
  }
}
