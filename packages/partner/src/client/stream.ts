/**
 * A stream of movements or entries that ends only when it is whole: resumed where it is cut, begun again where the
 * ledger has changed, and compared with what the service says of it.
 */
import { BlockCheck, type Blocks, rowsOf } from './blocks.ts'
import { clientError } from './errors.ts'
import type { Answer, Encoding } from './http/answer.ts'
import { cut } from './http/connection.ts'
import { idOf, itemsOf, lastLineOf } from './lines.ts'
import { changedIfRefused, LedgerChanged, linesOf, proveEnd, throughLosses } from './reader.ts'
import { type QueryValue, type Requests, sendFor } from './requests.ts'
import type { Streamed } from './selection.ts'

export interface StreamOptions {
  /** Ends everything at once with its reason. */
  signal?: AbortSignal | undefined
  /** How the body travels. Default: zstd where the runtime can read it, otherwise gzip. */
  encoding?: Encoding | undefined
  /** Goes on after what an earlier stream gave out. */
  resume?: ResumePoint | undefined
  /**
   * Called where the ledger has changed during the transfer, with the reason: discard everything that this stream gave
   * out, and what came before `resume`. When it has returned, the stream begins again at the first line. Without it the
   * stream throws LEDGER-CHANGED.
   */
  onRestart?: ((reason: string) => void | Promise<void>) | undefined
  /**
   * What proves that the stream is whole. `trailers` (the default where the runtime shows them): its row count and
   * SHA-256, after the last chunk. `blocks` (movements only): digests that are read first and compared while lines pass.
   */
  proof?: 'trailers' | 'blocks' | undefined
}

export interface ResumePoint {
  /** `producerId` of the last item that was kept. */
  after: string
  /** The `progress.etag` of the first answer. */
  etag: string
  /** Number of items up to and including `after`. */
  rows: number
}

type Proof = 'trailers' | 'blocks' | 'rows' | 'end'

export interface Progress {
  /** Items given out, and those before `resume`. */
  readonly rows: number
  /** Bytes given out, after decompression. */
  readonly bytes: number
  /** Bytes of bodies that have arrived, over all connections. */
  readonly wireBytes: number
  /** Answers that this stream has begun to read. */
  readonly connections: number
  /** Times that it has begun again because the ledger had changed. */
  readonly restarts: number
  readonly etag?: string
  /** Names the state of the ledger that the stream shows. */
  readonly cursor?: string
  /**
   * Undefined until the end.
   * - `trailers`: one answer brought everything, with the row count and SHA-256 of its trailers.
   * - `blocks`: every line was compared with the digests of the ledger.
   * - `rows`: movements came in several parts or without trailers, as many as the blocks have. Not each byte is proven.
   * - `end`: entries came so, and the service had nothing after the last one. Not each byte is proven.
   */
  readonly provedBy?: Proof
}

/** Items of a selection, in order. To be read once, by its chunks or as its items. */
export interface LedgerStream<Item> extends AsyncIterable<Item> {
  /** Whole NDJSON lines, many at a time, each with its line feed. */
  chunks(): AsyncGenerator<Uint8Array, void, undefined>
  /** Kept up to date while the stream is read. */
  readonly progress: Progress
}

/** @throws {GrandlivreError} INVALID-OPTION: half a point would begin at the first line, or in another state */
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
  /** Of movements: the blocks of just these lines. */
  blocks?: () => Promise<Blocks>
}

const restartsMax = 10
/** Size of a chunk: large enough that writing it costs little, and far below what memory holds. */
const gatherBytes = 256 * 1024
/** How often blocks and stream may be of different states of the ledger before the stream gives up. */
const pairingsMax = 5

/** Where the runtime, or a proxy on the way, shows no trailers, later streams of movements read blocks first. */
const withoutTrailers = new WeakSet<Requests>()

const changedBetween = () => new LedgerChanged('The ledger changed between two parts of the transfer')

export class LedgerTransfer<Item> implements LedgerStream<Item> {
  readonly progress: { -readonly [Name in keyof Progress]: Progress[Name] }
  readonly #requests: Requests
  readonly #source: StreamSource
  readonly #options: StreamOptions
  #isTaken = false
  /** Bytes given out, those of earlier beginnings among them. */
  #reached = 0
  /** The last line given out, and before that the id to resume after. */
  #last: Uint8Array | string | undefined
  #check: BlockCheck | undefined
  /** Rows that came before the check, and have no digest that proves them. */
  #checkedFrom = 0
  /** All rows of the selection, once it matters. */
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

  /** The lines of one answer. Returns if the whole is proven, and throws a loss if something is still to come. */
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
      const blocks = await this.#blocksFirst(after !== undefined)
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

  /** Blocks, if they prove the lines to come, or if rows of several parts will have to be added up. */
  async #blocksFirst(isResumed: boolean): Promise<Blocks | undefined> {
    const isNeeded = this.#provesByBlocks || (isResumed && this.#total === undefined)
    return isNeeded && !this.#check ? this.#source.blocks?.() : undefined
  }

  /** The id to resume after. */
  #after(): string | undefined {
    return typeof this.#last === 'object' ? idOf(this.#last) : this.#last
  }

  /** A request for what comes after the last line, in the state that is read. */
  #request(after: string | undefined) {
    const { streamed, query } = this.#source
    const { etag } = this.progress
    const headers = after !== undefined && etag !== undefined ? { 'If-Match': etag } : {}
    return { path: `/mad/${streamed}`, query: { ...query, after }, headers, signal: this.#options.signal }
  }

  async #send(after: string | undefined): Promise<Answer> {
    const request = this.#request(after)
    const unhashed = this.#provesByBlocks ? { 'Want-Content-Digest': 'sha-256=0' } : {}
    return sendFor(this.#requests, 'application/x-ndjson', this.#options.encoding, {
      ...request,
      headers: { ...request.headers, ...unhashed },
    }).catch((error) => {
      throw changedIfRefused(error, changedBetween)
    })
  }

  /**
   * What proves that the whole stream is there, now that an answer has ended properly.
   * @param isCounted whether its trailers say that it is whole
   * @param rowsBefore rows of this stream before that answer
   * @throws {unknown} a loss, if more is to come
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
