/**
 * A stream of movements or entries that ends only when it is whole: resumed where it is cut, begun again where the
 * ledger has changed, and compared with what the service says of it.
 */
import { createHash, type Hash } from 'node:crypto'
import { BlockCheck, type Blocks, rowsOf } from './blocks.ts'
import { agreesWithTrailers, askEnd, hasBothTrailers } from './end.ts'
import { clientError, GrandlivreError } from './errors.ts'
import { type Answer, bestEncoding, type Encoding } from './http/answer.ts'
import { cut, isLost } from './http/connection.ts'
import { throughLosses } from './http/losses.ts'
import { countLines, idOf, itemsOf, lastLineOf, WholeLines } from './lines.ts'
import { type QueryValue, type Requests, requireType } from './requests.ts'
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
  /** Of the first answer: `progress.etag`. */
  etag: string
  /** Items up to and with `after`. */
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
   * Undefined until the end. `trailers`: one answer brought everything, and its row count and SHA-256 are those of the
   * trailers. `blocks`: every line was compared with the digests of the ledger. The others prove that nothing is missing,
   * and not each byte: `rows`, of movements that came in several parts or without trailers, that there are as many as in
   * the blocks; `end`, of such entries, that the service had nothing after the last one.
   */
  readonly provedBy?: Proof
}

/** Items of a selection, in order. To be read once, by its chunks or as its items. */
export interface LedgerStream<Item> extends AsyncIterable<Item> {
  /** Whole NDJSON lines, many at a time, each with its line feed. */
  chunks(): AsyncGenerator<Uint8Array, void, undefined>
  /** Live. */
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
export interface Source {
  streamed: Streamed
  query: Record<string, QueryValue>
  /** Of movements: the blocks of just these lines. */
  blocks?: (() => Promise<Blocks>) | undefined
}

const restartsMax = 10
/** Of a chunk: large enough that writing it costs little, and far below what memory is. */
const gatherBytes = 256 * 1024
/** How often blocks and stream may be of different states of the ledger before the stream gives up. */
const pairingsMax = 5

/** The ledger has changed. Only the reader knows whether it can begin again. */
class Changed extends Error {}

const changedBetween = () => new Changed('The ledger changed between two parts of the transfer')

/** Of a request for what comes after a part. The id of its last item may be gone with its entry. */
function changedIfRefused(error: unknown): never {
  const isRefused =
    error instanceof GrandlivreError &&
    (error.status === 412 || error.issues.some(({ parameter }) => parameter === 'after'))
  throw isRefused ? changedBetween() : error
}

/** Where the runtime, or a proxy on the way, shows no trailers, later streams read blocks first. */
const withoutTrailers = new WeakSet<Requests>()

export class Transfer<Item> implements LedgerStream<Item> {
  readonly progress: { -readonly [Name in keyof Progress]: Progress[Name] }
  readonly #requests: Requests
  readonly #source: Source
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

  constructor(requests: Requests, source: Source, options: StreamOptions) {
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
      lost: () => this.#stopped(),
    }
    try {
      yield* throughLosses(this.#requests, reader, this.#options.signal)
    } catch (error) {
      const isLoss = error instanceof GrandlivreError && error.code === 'CONNECTION-FAILED'
      if (!isLoss || this.progress.rows === 0) throw error
      throw clientError('CONNECTION-LOST', `${this.#stopped()}: ${error.message}`, { cause: error })
    }
  }

  async *#untilChanged(): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      try {
        return yield* this.#connection()
      } catch (error) {
        if (!(error instanceof Changed)) throw error
        await this.#restart(error.message)
      }
    }
  }

  /** The lines of one answer. Returns if the whole is proven, and throws a loss if something is still to come. */
  async *#connection(): AsyncGenerator<Uint8Array, void, undefined> {
    const { answer, hash } = await this.#open()
    const { progress } = this
    const lines = new WholeLines(gatherBytes)
    const rowsBefore = progress.rows
    let wireBytes = 0
    progress.connections += 1
    try {
      for await (const chunk of answer.body) {
        progress.wireBytes += answer.wireBytes() - wireBytes
        wireBytes = answer.wireBytes()
        hash?.update(chunk)
        const whole = lines.push(chunk)
        if (whole) yield this.#give(whole)
      }
    } catch (error) {
      // What came before a cut is not asked for again.
      const whole = isLost(error) ? lines.flush() : undefined
      if (whole) yield this.#give(whole)
      throw error
    }
    const whole = lines.flush()
    if (whole) yield this.#give(whole)
    const rows = progress.rows - rowsBefore
    progress.provedBy = await this.#prove(answer, rows, lines.restBytes, hash)
  }

  /** The id to resume after. */
  #after(): string | undefined {
    return typeof this.#last === 'object' ? idOf(this.#last) : this.#last
  }

  #give(lines: Uint8Array): Uint8Array {
    this.#check?.pass(lines)
    this.#last = lastLineOf(lines)
    this.progress.rows += countLines(lines)
    this.#reached += lines.length
    this.progress.bytes += lines.length
    return lines
  }

  async #open(): Promise<{ answer: Answer; hash: Hash | undefined }> {
    const { progress } = this
    const after = this.#after()
    for (let pairing = 1; ; pairing += 1) {
      const blocks = await this.#blocksFirst(after !== undefined)
      const answer = await this.#send(after)
      const cursor = answer.headers['x-ledger-cursor']
      if (progress.cursor !== undefined && progress.cursor !== cursor) {
        answer.discard()
        throw changedBetween()
      }
      if (blocks && blocks.cursor !== cursor && this.#provesByBlocks) {
        answer.discard()
        if (pairing < pairingsMax) continue
        throw clientError(
          'LEDGER-CHANGED',
          'The ledger changes too often to read it together with its blocks',
        )
      }
      if (cursor !== undefined) progress.cursor = cursor
      const etag = progress.etag ?? answer.headers['etag']
      if (etag !== undefined) progress.etag = etag
      if (blocks && blocks.cursor === cursor) this.#compareWith(blocks, answer)
      return { answer, hash: this.#check ? undefined : createHash('sha256') }
    }
  }

  #compareWith({ blocks }: Blocks, answer: Answer): void {
    this.#total = rowsOf(blocks)
    if (!this.#provesByBlocks) return
    try {
      this.#checkedFrom = this.progress.rows
      this.#check = new BlockCheck(blocks, this.#checkedFrom)
    } catch (error) {
      answer.discard()
      throw error
    }
  }

  get #provesByBlocks(): boolean {
    const { proof } = this.#options
    if (!this.#source.blocks) return false
    return proof === 'blocks' || withoutTrailers.has(this.#requests)
  }

  /** Blocks, if they prove the lines to come, or if rows of several parts will have to be added up. */
  async #blocksFirst(isResumed: boolean): Promise<Blocks | undefined> {
    if (this.#check || !this.#source.blocks) return undefined
    if (this.#provesByBlocks || (isResumed && this.#total === undefined)) return this.#source.blocks()
    return undefined
  }

  async #send(after: string | undefined): Promise<Answer> {
    const { streamed, query } = this.#source
    const { encoding = bestEncoding(), signal } = this.#options
    const { etag } = this.progress
    const isResumed = after !== undefined && etag !== undefined
    const request = { path: `/mad/${streamed}`, query: { ...query, after } }
    const type = 'application/x-ndjson'
    try {
      const answer = await this.#requests.send({
        ...request,
        headers: {
          Accept: type,
          'Accept-Encoding': encoding,
          ...(isResumed ? { 'If-Match': etag } : {}),
          ...(this.#provesByBlocks ? { 'Want-Content-Digest': 'sha-256=0' } : {}),
        },
        signal,
      })
      requireType(answer, type, request)
      return answer
    } catch (error) {
      return changedIfRefused(error)
    }
  }

  /**
   * What proves that the whole stream is there, now that an answer has ended properly.
   * @throws {unknown} a loss, if more is to come
   */
  async #prove(answer: Answer, rows: number, restBytes: number, hash: Hash | undefined): Promise<Proof> {
    const { blocks } = this.#source
    const all = this.progress.rows
    // Whatever they say: where one is missing, beginning again has to prove by blocks.
    if (!this.#check && !hasBothTrailers(answer)) withoutTrailers.add(this.#requests)
    const isCounted = agreesWithTrailers(answer, rows, hash)
    if (isCounted && this.#total !== undefined && all !== this.#total)
      throw clientError('NOT-PROVEN', `${all} rows arrived in all parts, and the ledger has ${this.#total}`)
    if (restBytes > 0) throw cut('The body ended in the middle of a line')
    if (this.#check?.isComplete) return this.#checkedFrom === 0 ? 'blocks' : 'rows'
    if (this.#check) throw cut('The body ended before the last movement')
    if (isCounted && rows === all) return 'trailers'
    if (blocks) return this.#proveByRows(blocks)
    return isCounted ? 'end' : this.#proveEnd()
  }

  /** Asks what comes after the last item. */
  async #proveEnd(): Promise<'end'> {
    const { streamed, query } = this.#source
    const { etag, cursor } = this.progress
    const question = {
      path: `/mad/${streamed}`,
      query: { ...query, after: this.#after() },
      etag,
      signal: this.#options.signal,
    }
    const end = await askEnd(this.#requests, question).catch(changedIfRefused)
    if (end.cursor !== cursor) throw changedBetween()
    if (!end.isEnd) throw cut('The body ended before the last item')
    return 'end'
  }

  async #proveByRows(readBlocks: () => Promise<Blocks>): Promise<'rows'> {
    const { progress } = this
    if (this.#total === undefined) {
      const { blocks, cursor } = await readBlocks()
      if (cursor !== progress.cursor)
        throw new Changed(
          'The answer had no trailers, and the ledger has changed since, so it cannot be proven',
        )
      this.#total = rowsOf(blocks)
    }
    if (progress.rows === this.#total) return 'rows'
    if (progress.rows < this.#total) throw cut('The body ended before the last movement')
    throw clientError('NOT-PROVEN', `${progress.rows} rows arrived, and the ledger has ${this.#total}`)
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

  #stopped(): string {
    return `The transfer stopped after ${this.progress.rows} rows`
  }
}
