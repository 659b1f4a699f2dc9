/**
 * Answers with an export that streams from a thread: conditional headers, then chunks, then trailers that prove that
 * the transfer is complete.
 */
import { createHash } from 'node:crypto'
import type { Context } from 'hono'
import { AppError } from '../../errors.ts'
import { type BlocksHead, isKept } from '../../exports/blocks/block.ts'
import { type DigestsKey, type KeptDigests, keepBlocks } from '../../exports/blocks/kept-blocks.sql.ts'
import { compressWhole } from '../../exports/chunks.ts'
import type { LedgersTask } from '../../exports/run/ledgers/task.ts'
import { type ExportReader, startExport } from '../../exports/run/start.ts'
import type { Encoding, ExportHead, ExportSummary, ExportTask } from '../../exports/run/task.ts'
import { tagOf } from '../../exports/selection.ts'
import { attachment } from '../../store/attachment.ts'
import type { ExportOutcome } from '../../telemetry/metrics.ts'
import { identified, noteFacts } from '../authenticate.ts'
import { caching, contentHeaders, etagOf, holdsEtag, namesSelection, wantsSha256 } from '../representation.ts'
import { whenOver } from '../request-slot.ts'
import type { Edge } from '../route.ts'
import type { Services } from '../services.ts'

interface StreamedExport {
  /** The task that the thread runs. */
  task: ExportTask
  /** Name of the file, without its ending. */
  fileName: string
  /** Undefined if the answer concerns no single ledger; it then has no ETag. */
  ledger: LedgerState | undefined
  /** The answer, if it is known without reading anything; no thread is started then. */
  known?: KnownAnswer | undefined
}

export interface KnownAnswer {
  body: string
  /** Number of its items. */
  rows: number
  blocks?: BlocksHead | undefined
}

interface LedgerState {
  /** The cursor read before the export starts; the snapshot of the export may be newer. */
  cursor: string
  /** Returns the tag of the selection at a state of the ledger. */
  tagAt: (cursor: string) => string
}

export async function streamExport(
  c: Context<Edge>,
  services: Services,
  download: StreamedExport,
): Promise<Response> {
  const { task, ledger, known } = download
  const state = { cursor: ledger?.cursor, blocks: known?.blocks }
  const headers = stateHeaders(download, state)
  noteFacts(c, { cursor: ledger?.cursor })
  if (ledger) {
    checkIfMatch(c, ledger, ledger.cursor)
    if (headers.ETag !== undefined && holdsEtag(c.req.header('if-none-match'), headers.ETag))
      return c.body(null, 304, { ...headers, ...caching })
  }
  if (c.req.method === 'HEAD') return c.body(null, 200, { ...headers, ...headersOf(download) })

  const digest = wantsSha256(c.req.header('want-content-digest'))
  const { schemaId } = identified(c)
  const seen = ledger && { schemaId, folderId: c.get('folderId')!, cursor: ledger.cursor }
  const reader = known
    ? await readerOf(known, state, task.encoding, digest)
    : startExport(services.threads, { task, schemaId, seen }, digest)
  return answerFrom(c, services, task, reader, {
    isListed: known === undefined,
    headers: (head) => {
      noteFacts(c, { cursor: head.cursor })
      // The thread's snapshot may be newer than the state checked above.
      if (ledger && head.cursor !== undefined) checkIfMatch(c, ledger, head.cursor)
      const announced = digest ? 'X-Row-Count, X-Content-SHA256' : 'X-Row-Count'
      return { ...stateHeaders(download, head), ...headersOf(download), Trailer: announced }
    },
    ended: ({ rows, sha256, blocks }, { cursor }) => {
      const digests = sha256 === undefined ? {} : { 'X-Content-SHA256': sha256 }
      c.env.outgoing.addTrailers({ 'X-Row-Count': String(rows), ...digests })
      noteFacts(c, { rows, sha256 })
      if (blocks && 'selection' in task && isKept(task.selection))
        keep(c, services, task.selection, cursor, { blocks, tables: undefined })
    },
  })
}

/** Keeps the digests that an answer computed, for later answers. Neither delays this answer nor makes it fail. */
export function keep(
  c: Context<Edge>,
  { database, log }: Services,
  key: DigestsKey,
  cursor: string | undefined,
  digests: KeptDigests,
): void {
  if (cursor === undefined) return
  keepBlocks(database, key, cursor, digests).catch((error: unknown) =>
    log('blocks.notKept', { requestId: c.get('requestId'), error }),
  )
}

type AnswerReader = Pick<ExportReader, 'head' | 'read' | 'recycle' | 'summary' | 'cancel' | 'cancelled'>

/** Makes a reader of an answer that is known without a thread. It has the methods of a reader of a thread. */
async function readerOf(
  { body, rows }: KnownAnswer,
  head: ExportHead,
  encoding: Encoding,
  digest: boolean,
): Promise<AnswerReader> {
  const bytes = Buffer.from(body)
  const sha256 = digest ? createHash('sha256').update(bytes).digest('hex') : undefined
  const chunks = [encoding === 'identity' ? bytes : await compressWhole(bytes, encoding)]
  return {
    head: async () => head,
    read: async () => chunks.shift(),
    recycle: () => {},
    summary: { rows, bytes: bytes.length, sha256 },
    cancel: () => {},
    cancelled: false,
  }
}

/**
 * Answers with what a thread sends, and reports the answer to staff, telemetry, the log and the audit.
 * @param answer.isListed false if staff need not see or cut the answer: nothing is read for it
 * @param answer.headers returns the headers of an answer with this head, or throws why it must not be sent
 * @param answer.delivered called before each read, with the number of bytes that the network has by then
 * @param answer.ended called when everything but the trailers is sent
 */
export async function answerFrom(
  c: Context<Edge>,
  services: Services,
  task: ExportTask | LedgersTask,
  reader: AnswerReader,
  answer: {
    isListed: boolean
    headers: (head: ExportHead) => Record<string, string>
    delivered?: (bytes: number) => void
    ended?: (summary: ExportSummary, head: ExportHead) => void
  },
): Promise<Response> {
  const observer = observeStream(c, services, task, answer.isListed)
  // Cancels as soon as the client disconnects, even while its selection is checked or the database searches for the
  // first row.
  whenOver(c.env.outgoing, () => reader.cancel())
  try {
    const head = await reader.head()
    const headers = answer.headers(head)
    // Errors before the first chunk are answered with their status.
    let next = await reader.read()
    const body = streamBody(c, services, 'stream.broken', {
      read: async () => {
        answer.delivered?.(observer.bytes())
        const chunk = next ?? (await reader.read().catch((error) => observer.broke(error, reader.cancelled)))
        next = undefined
        if (chunk) observer.chunk(chunk.length)
        return chunk
      },
      recycle: (chunk) => reader.recycle(chunk),
      ended: () => {
        const summary = reader.summary!
        answer.ended?.(summary, head)
        observer.end(summary)
      },
      cancel: () => reader.cancel(),
    })
    // Set explicitly, because the adapter would otherwise buffer a short answer and add a Content-Length, and an
    // answer with a length has no trailers. HTTP/1.0 clients get it too: without it they would read any end of the
    // connection, even after a failure, as the end of the body.
    return c.body(body, 200, { ...headers, 'Transfer-Encoding': 'chunked' })
  } catch (error) {
    // The client has disconnected: there is nothing to answer, and nothing has failed.
    if (reader.cancelled) return c.body(null)
    observer.refused(error)
    reader.cancel()
    throw error
  }
}

/** Reports a streamed answer to staff, telemetry, readiness and the log, from its begin to its end. */
function observeStream(
  c: Context<Edge>,
  { telemetry, readiness, streams }: Services,
  task: ExportTask | LedgersTask,
  isListed: boolean,
) {
  const { outgoing } = c.env
  const { what, form, encoding } = task
  const { schemaId, thirdPartyId } = identified(c)
  const [requestId, folderId, since] = [c.get('requestId'), c.get('folderId'), Date.now()]
  const facts = { what, form, encoding, schemaId, folderId, thirdPartyId, requestId, since }
  const listed = isListed ? streams.begin(facts, outgoing) : undefined
  const kind = 'since' in task && task.since !== undefined ? 'changes' : what
  const ended = { kind, format: form, startedAt: since, trace: c.get('telemetry').trace, requestId }
  let isOver = false
  /**
   * Reports the end. Only the first call counts.
   * @param summary given for an answer that was sent whole
   */
  const over = (outcome: ExportOutcome, summary?: ExportSummary) => {
    if (isOver) return
    isOver = true
    const { rows = 0, bytes = 0, facts } = summary ?? {}
    telemetry.exportEnded({ ...ended, outcome, rows, bytes, facts })
  }
  whenOver(outgoing, () => over('left'))
  return {
    /** Bytes sent so far. */
    bytes: () => listed?.bytes ?? 0,
    chunk: (bytes: number) => listed && streams.sent(listed, bytes),
    end(summary: ExportSummary) {
      if (listed) listed.rows = summary.rows
      c.set('sent', { rows: summary.rows, bytes: summary.bytes })
      over('done', summary)
    },
    /** The answer failed after its first byte. */
    broke(error: unknown, isCancelled: boolean): never {
      readiness.recordFailure(error)
      if (!isCancelled) over('broken')
      throw error
    },
    /** The answer failed before its first byte. A mistake in the request is no failure of the export. */
    refused(error: unknown) {
      if (error instanceof AppError && error.status < 500) isOver = true
      else over('failed')
    },
  }
}

function checkIfMatch(c: Context<Edge>, { tagAt }: LedgerState, cursor: string): void {
  const ifMatch = c.req.header('if-match')
  if (ifMatch !== undefined && !namesSelection(ifMatch, tagAt(cursor)))
    throw new AppError('ERR-PRECONDITION-FAILED')
}

/** The headers that name the state of the ledger and the bytes of this answer. */
function stateHeaders(
  { ledger, task }: StreamedExport,
  { cursor, blocks }: Partial<ExportHead>,
): Record<string, string> {
  if (!ledger || cursor === undefined) return {}
  const digest = blocks ? { 'X-Ledger-Digest': blocks.digest } : {}
  const state = { 'X-Ledger-Cursor': cursor, ...digest }
  // Changes have no ETag: compaction may give the same change in wider ranges. The cursor names the state.
  if ('since' in task && task.since !== undefined) return state
  // The bounds of kept blocks depend on their past, which only the thread may know. Without them there is no ETag.
  if (task.what === 'blocks' && isKept(task.selection) && !blocks) return state
  return { ETag: etagOf(ledger.tagAt(cursor), task, partsOf(task, blocks)), ...state }
}

/** Names the part of the selection that the answer shows, for its ETag. */
function partsOf(task: ExportTask, blocks: BlocksHead | undefined): string[] {
  if (blocks?.bounds !== undefined) return [`bounds-${blocks.bounds}`]
  if (!('after' in task)) return []
  const { after, entries } = task
  return [
    ...(after === undefined ? [] : [`after-${after}`]),
    ...(entries === undefined ? [] : [`entries-${tagOf(entries)}`]),
  ]
}

function headersOf({ task, fileName }: StreamedExport): Record<string, string> {
  return {
    ...caching,
    ...contentHeaders(task),
    'Content-Disposition': attachment(`${fileName}.${task.form}`),
  }
}

/** The bytes of a streamed answer: of an export or a file. */
export interface BodySource {
  /** Reads the next bytes. Undefined at the end. */
  read(): Promise<Uint8Array | undefined>
  /** Called once the kernel has these bytes: their buffer may be reused. */
  recycle?(bytes: Uint8Array): void
  /** Called when everything is read and the answer has not ended yet: the time to add trailers. */
  ended?(): void
  /** Called when the client has stopped reading. */
  cancel(): void
}

/**
 * Turns a source into the body of an answer. It only pulls: the socket requests each chunk.
 *
 * All failures are treated the same way: the connection is destroyed before the last byte, so that a partial body never
 * looks complete, and one line is logged. `pull()` throws nothing: the adapter would print the error among the log
 * lines and write it into the body. A client that disconnects is not a failure.
 */
export function streamBody(
  c: Context<Edge>,
  { log }: Pick<Services, 'log'>,
  broken: 'stream.broken' | 'file.broken',
  source: BodySource,
): ReadableStream<Uint8Array> {
  const { outgoing } = c.env
  const facts = c.get('audited')
  const sent: Uint8Array[] = []
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          // The answer has begun and its write buffer is empty, so the kernel has all earlier chunks.
          if (outgoing.headersSent && outgoing.writableLength === 0)
            for (const chunk of sent.splice(0)) source.recycle?.(chunk)
          const chunk = await source.read()
          if (chunk) {
            if (facts) facts.bytes = (facts.bytes ?? 0) + chunk.length
            sent.push(chunk)
            return controller.enqueue(chunk)
          }
          source.ended?.()
          controller.close()
        } catch (error) {
          if (!outgoing.destroyed) log(broken, { requestId: c.get('requestId'), error })
          outgoing.destroy()
        }
      },
      cancel: () => source.cancel(),
    },
    { highWaterMark: 0 },
  )
}
