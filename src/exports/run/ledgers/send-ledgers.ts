/**
 * Sends many ledgers to the main thread, one after the other, each from a snapshot of its own on the same two
 * connections. Before each ledger it asks the main thread for it, because the caller may no longer be allowed to read
 * it. Once the rows of one ledger are read, the next one begins, while the last bytes are on their way.
 */
import { once } from 'node:events'
import type { MessagePort } from 'node:worker_threads'
import { limits } from '../../../config.ts'
import { unavailableIfMissing } from '../../../db/outage.ts'
import { AppError } from '../../../errors.ts'
import { UnsupportedByFormat } from '../../../formats/file-formats.ts'
import { StageTimes } from '../../../telemetry/telemetry.ts'
import { ChannelWriter } from '../../../threads/channel.ts'
import { type ChunkBuffer, sameChunkBuffer } from '../../chunks.ts'
import { jsonLine } from '../../render/framing.ts'
import type { ExportSnapshot, ExportSources } from '../../sources/export-sources.ts'
import { chunkBuffer, renderFirst, sendChunks } from '../send.ts'
import type { ExportHead, ExportSummary } from '../task.ts'
import { beginBlocks, beginLedger, type Ledger, noChunks } from './ledger.ts'
import { refused } from './lines.ts'
import type { AskedLedger, EndedLedger, LedgersTask, NextLedger, SentLedgers } from './task.ts'

/** Resolves when the thread's part is over; its error goes through the channel. */
export async function sendLedgers(sources: ExportSources, sent: SentLedgers): Promise<void> {
  const { task, port, buffers, asking, sentAt } = sent
  const channel = new ChannelWriter<ExportHead, ExportSummary>(port, limits.channelWindowBytes, buffers)
  const times = new StageTimes(sentAt)
  times.end('wait')
  const ledgers = new Ledgers(sources, task, channel.signal, chunkBuffer(task, channel, undefined))
  try {
    channel.head({ cursor: undefined })
    const ask: Ask = (ended) => askFor(asking, ended, channel.signal)
    // A compressor holds bytes back: nobody knows where in the answer a ledger ends.
    const upTo = () => (task.encoding === 'identity' ? channel.sentBytes : Number.POSITIVE_INFINITY)
    const produced = { chunks: ledgers.chunks(ask, upTo), rows: () => ledgers.rows }
    channel.end(await sendChunks(produced, task.encoding, channel, undefined, times))
  } catch (error) {
    if (!channel.signal.aborted) sources.count(error)
    channel.fail(unavailableIfMissing(error))
  } finally {
    asking.close()
    await ledgers.close()
  }
}

/** Rejects if the reader has cancelled. */
async function askFor(
  asking: MessagePort,
  ended: EndedLedger | undefined,
  signal: AbortSignal,
): Promise<NextLedger> {
  asking.postMessage(ended)
  const [next] = await once(asking, 'message', { signal })
  return next
}

type Ask = (ended: EndedLedger | undefined) => Promise<NextLedger>

/** A ledger that has begun, or the lines that are sent in its place. */
interface AnsweredLedger extends Ledger {
  asked: AskedLedger
}

class Ledgers {
  /** Movements of all ledgers. */
  rows = 0
  readonly #sources: ExportSources
  readonly #task: LedgersTask
  readonly #signal: AbortSignal
  readonly #buffer: ChunkBuffer
  readonly #spare = sameChunkBuffer()
  /** Snapshot of the last ledger; undefined if its connections were given back. */
  #snapshot: ExportSnapshot | undefined
  /** The ledger that comes next; undefined after the last. */
  #next: Promise<AnsweredLedger | undefined> = Promise.resolve(undefined)

  constructor(sources: ExportSources, task: LedgersTask, signal: AbortSignal, buffer: ChunkBuffer) {
    this.#sources = sources
    this.#task = task
    this.#signal = signal
    this.#buffer = buffer
    signal.addEventListener('abort', () => void this.#drop(signal.reason))
  }

  /** @param upTo returns how many bytes are sent */
  async *chunks(ask: Ask, upTo: () => number) {
    const counts = { whole: 0, refusals: 0 }
    this.#begin(ask, undefined)
    for (let ledger = await this.#next; ledger; ledger = await this.#next) {
      const { lines, ...sent } = yield* this.#rowsOf(ledger)
      counts[sent.refusal ? 'refusals' : 'whole']++
      this.rows += sent.rows
      const last = encoder.encode(lines)
      this.#begin(ask, { asked: ledger.asked, ...sent, upTo: upTo() + last.length })
      yield last
    }
    if (this.#task.what === 'ledgers') yield encoder.encode(jsonLine(counts))
  }

  /** Must be called once the channel has ended. No ledger begins after that. */
  async close(): Promise<void> {
    await this.#next.catch(() => {})
    // After a failure, a snapshot may be open that still has rows, which nobody will read.
    await this.#drop(new Error('The answer has ended'))
  }

  #begin(ask: Ask, ended: EndedLedger | undefined): void {
    this.#next = ask(ended).then((next) => this.#beginNext(next))
    // The loop in `chunks` gets the rejection.
    this.#next.catch(() => {})
  }

  async #beginNext(next: NextLedger): Promise<AnsweredLedger | undefined> {
    // A ledger that is not read needs no open transaction.
    if (!next || 'known' in next) await this.#drop()
    if (!next) return undefined
    const { asked } = next
    if ('known' in next) return { asked, chunks: noChunks(), end: () => next.known }
    try {
      return { asked, ...(await this.#read(asked, next.cursor)) }
    } catch (error) {
      if (this.#signal.aborted) throw error
      this.#sources.count(error)
      return { asked, chunks: noChunks(), end: () => refused(asked, error) }
    }
  }

  async *#rowsOf({ asked, chunks, end }: AnsweredLedger) {
    try {
      yield* chunks
      return end()
    } catch (error) {
      // A partner that asks for this ledger again gets it from the main database.
      if (!this.#signal.aborted && this.#snapshot) this.#sources.failed(this.#snapshot, error)
      await this.#drop(error as Error)
      if (!(error instanceof UnsupportedByFormat)) throw error
      return refused(asked, error)
    }
  }

  /** Produces up to the first chunk. Until then it can begin again on the main database if a replica fails it. */
  async #read(asked: AskedLedger, cursor: string): Promise<Ledger> {
    const { schemaId } = this.#task
    const seen = { schemaId, folderId: asked.society, cursor }
    for (let isAgain = false; ; isAgain = true) {
      const before = this.#snapshot
      this.#snapshot = undefined
      const need = { schemaId, seen, isAgain }
      const snapshot = await (before ? this.#sources.next(before, need) : this.#sources.open(need))
      this.#snapshot = snapshot
      try {
        this.#signal.throwIfAborted()
        const begin = this.#task.what === 'ledgers' ? beginLedger : beginBlocks
        const ledger = await begin(snapshot, asked, this.#task, this.#buffer, this.#spare)
        return { ...ledger, chunks: await renderFirst(ledger.chunks) }
      } catch (error) {
        // The connections are sound if the ledger was only refused.
        const isRefused = error instanceof AppError && error.status < 500
        await this.#drop(isRefused ? undefined : (error as Error))
        if (this.#signal.aborted || !this.#sources.failed(snapshot, error)) throw error
      }
    }
  }

  /**
   * Closes the snapshot. Its rows were read, or their error is reported, so a failure to close it is only counted for
   * operators.
   */
  async #drop(error?: Error): Promise<void> {
    const snapshot = this.#snapshot
    this.#snapshot = undefined
    await snapshot?.close(error).catch((failure: unknown) => this.#sources.count(failure))
  }
}

const encoder = new TextEncoder()
