/**
 * Answers with an export that streams from a thread: conditional headers, then chunks, then trailers that prove that
 * the transfer is complete.
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { Context } from 'hono'
import type { AnswerFacts } from '../../audit/audit-trail.ts'
import { AppError } from '../../errors.ts'
import { type Block, type BlocksHead, isKept } from '../../exports/blocks/block.ts'
import { keepBlocks } from '../../exports/blocks/kept-blocks.sql.ts'
import { compressWhole } from '../../exports/chunks.ts'
import type { LedgersTask } from '../../exports/run/ledgers/task.ts'
import { type ExportReader, startExport } from '../../exports/run/start.ts'
import type { Encoding, ExportHead, ExportSummary, ExportTask } from '../../exports/run/task.ts'
import { tagOf } from '../../exports/selection.ts'
import { mediaTypes } from '../../formats/file-formats.ts'
import { attachment } from '../../store/attachment.ts'
import type { ExportOutcome } from '../../telemetry/metrics.ts'
import { etagOf, holdsEtag, namesSelection, wantsSha256 } from '../representation.ts'
import type { Edge } from '../route.ts'
import type { Services } from '../services.ts'
import type { RunningStream } from './running-streams.ts'

export interface StreamedExport {
  /** The task of the thread. */
  task: ExportTask
  /** Name of the file, without its ending. */
  fileName: string
  /** Undefined if the answer concerns no single ledger, and thus has no ETag. */
  ledger: LedgerState | undefined
  /** The answer, if it is known without reading anything: no thread is started. */
  known?: KnownAnswer | undefined
}

export interface KnownAnswer {
  body: string
  /** Its items. */
  rows: number
  blocks?: BlocksHead | undefined
}

export interface LedgerState {
  /** Read before the export starts; its snapshot may be newer. */
  cursor: string
  /** The tag of the selection at a state of the ledger. */
  tagAt: (cursor: string) => string
}

export async function streamExport(
  c: Context<Edge>,
  services: Services,
  download: StreamedExport,
): Promise<Response> {
  const { ledger, known } = download
  const state = stateHeaders(download, { cursor: ledger?.cursor, blocks: known?.blocks })
  noteFacts(c, { cursor: ledger?.cursor })
  if (ledger) {
    checkIfMatch(c, ledger, ledger.cursor)
    if (state.ETag !== undefined && holdsEtag(c.req.header('if-none-match'), state.ETag))
      return c.body(null, 304, { ...state, ...caching })
  }
  if (c.req.method === 'HEAD') return c.body(null, 200, { ...state, ...headersOf(download) })

  const digest = wantsSha256(c.req.header('want-content-digest'))
  const report = reportExport(c, services, download.task)
  if (known) {
    const source = await sourceOfText(known, download.task.encoding, digest, c, report)
    return respond(c, services, source, { ...state, ...headersOf(download), Trailer: trailers(digest) })
  }
  const reader = startExport(services.threads, download.task, digest, ledger?.cursor)
  const listed = listStream(c, services, download.task)
  const { outgoing } = c.env
  // Covers every way in which the client disconnects, even while the database is searching for the first row.
  outgoing.once('close', () => reader.cancel())
  // It may have disconnected while the selection was checked.
  if (outgoing.closed) reader.cancel()
  try {
    const head = await reader.head()
    const { cursor } = head
    noteFacts(c, { cursor })
    // The thread's snapshot may be newer than the state checked above.
    if (ledger && cursor !== undefined) checkIfMatch(c, ledger, cursor)
    // Errors before the first chunk are answered with their status.
    const first = await reader.read()
    const source = sourceOf(reader, first, listed, c, services, report, (summary) => {
      const { blocks } = summary
      conclude(summary, c)
      if (blocks) keep(blocks, download.task, cursor, c, services)
    })
    const headers = { ...stateHeaders(download, head), ...headersOf(download), Trailer: trailers(digest) }
    return respond(c, services, source, headers)
  } catch (error) {
    // The client has disconnected: there is nothing to answer, and nothing has failed.
    if (reader.cancelled) return c.body(null)
    report.refused(error)
    reader.cancel()
    throw error
  }
}

function respond(
  c: Context<Edge>,
  services: Services,
  source: BodySource,
  headers: Record<string, string>,
): Response {
  return c.body(streamBody(c, services, 'stream.broken', source), 200, {
    ...headers,
    // Set explicitly, because the adapter would otherwise buffer a short answer and add a Content-Length, and an
    // answer with a length has no trailers. HTTP/1.0 clients get it too: without it they would read any end of the
    // connection, even after a failure, as the end of the body.
    'Transfer-Encoding': 'chunked',
  })
}

/** What `Trailer` announces. */
function trailers(digest: boolean): string {
  return digest ? 'X-Row-Count, X-Content-SHA256' : 'X-Row-Count'
}

function checkIfMatch(c: Context<Edge>, { tagAt }: LedgerState, cursor: string): void {
  const ifMatch = c.req.header('if-match')
  if (ifMatch !== undefined && !namesSelection(ifMatch, tagAt(cursor))) {
    throw new AppError('ERR-PRECONDITION-FAILED')
  }
}

/** The headers that name the state of the ledger and these bytes of it. */
function stateHeaders(
  { ledger, task }: StreamedExport,
  { cursor, blocks }: Partial<ExportHead>,
): Record<string, string> {
  if (!ledger || cursor === undefined) return {}
  const state = {
    'X-Ledger-Cursor': cursor,
    ...(blocks ? { 'X-Ledger-Digest': blocks.digest } : {}),
  }
  // Compaction may give the same change in wider ranges. The cursor names the state.
  if ('since' in task && task.since !== undefined) return state
  // The bounds of kept blocks depend on their past, which only the thread may know.
  if (task.what === 'blocks' && isKept(task.selection) && !blocks) return state
  return { ETag: etagOf(ledger.tagAt(cursor), task, partsOf(task, blocks)), ...state }
}

/** What the answer shows of the selection, for its ETag. */
function partsOf(task: ExportTask, blocks: BlocksHead | undefined): string[] {
  if (blocks?.bounds !== undefined) return [`bounds-${blocks.bounds}`]
  if (!('after' in task)) return []
  const { after, entries } = task
  return [
    ...(after === undefined ? [] : [`after-${after}`]),
    ...(entries === undefined ? [] : [`entries-${tagOf(entries)}`]),
  ]
}

/** Of answers that name what they show by an ETag, or show it to this caller alone. */
export const caching = {
  'Cache-Control': 'private, no-cache',
  Vary: 'Accept, Accept-Encoding, Authorization, society-id',
}

function headersOf({ task: { form, encoding }, fileName }: StreamedExport): Record<string, string> {
  return {
    ...caching,
    'Content-Type': mediaTypes[form],
    'Content-Disposition': attachment(`${fileName}.${form}`),
    ...(encoding === 'identity' ? {} : { 'Content-Encoding': encoding }),
  }
}

export function sourceOf(
  reader: ExportReader,
  first: Uint8Array | undefined,
  listed: RunningStream,
  c: Context<Edge>,
  { readiness, streams }: Services,
  report: ExportReport,
  ended: (summary: ExportSummary) => void,
): BodySource {
  let next = first
  const recordFailure = (error: unknown): never => {
    readiness.recordFailure(error)
    if (!reader.cancelled) report.ended('broken')
    throw error
  }
  return {
    read: async () => {
      const chunk = next ?? (await reader.read().catch(recordFailure))
      next = undefined
      if (chunk) streams.sent(listed, chunk.length)
      return chunk
    },
    recycle: (chunk) => reader.recycle(chunk),
    ended: () => {
      const summary = reader.summary!
      listed.rows = summary.rows
      ended(summary)
      c.set('sent', { rows: summary.rows, bytes: summary.bytes })
      report.ended('done', summary)
    },
    cancel: () => reader.cancel(),
  }
}

/** Lists the stream for staff until its answer ends. */
export function listStream(
  c: Context<Edge>,
  { streams }: Services,
  task: Pick<ExportTask | LedgersTask, 'what' | 'form' | 'encoding'>,
): RunningStream {
  const principal = c.get('principal')
  const facts = {
    what: task.what,
    form: task.form,
    encoding: task.encoding,
    schemaId: principal?.schemaId,
    folderId: c.get('folderId'),
    thirdPartyId: principal?.thirdPartyId,
    requestId: c.get('requestId'),
    since: Date.now(),
  }
  return streams.begin(facts, c.env.outgoing)
}

/** A known answer, as a body. */
async function sourceOfText(
  known: KnownAnswer,
  encoding: Encoding,
  digest: boolean,
  c: Context<Edge>,
  report: ExportReport,
): Promise<BodySource> {
  const body = Buffer.from(known.body)
  const sha256 = digest ? createHash('sha256').update(body).digest('hex') : undefined
  let next: Uint8Array | undefined = encoding === 'identity' ? body : await compressWhole(body, encoding)
  return {
    read: () => {
      const chunk = next
      next = undefined
      return Promise.resolve(chunk)
    },
    ended: () => {
      const summary = { rows: known.rows, bytes: body.length, sha256 }
      conclude(summary, c)
      c.set('sent', { rows: known.rows, bytes: body.length })
      report.ended('done', summary)
    },
    cancel: () => {},
  }
}

/** Everything is sent but the trailers. */
function conclude({ rows, sha256 }: ExportSummary, c: Context<Edge>): void {
  c.env.outgoing.addTrailers({
    'X-Row-Count': String(rows),
    ...(sha256 === undefined ? {} : { 'X-Content-SHA256': sha256 }),
  })
  noteFacts(c, { rows, sha256 })
}

/** For the audit. */
function noteFacts(c: Context<Edge>, facts: Pick<AnswerFacts, 'rows' | 'sha256' | 'cursor'>): void {
  Object.assign(c.get('audited') ?? {}, facts)
}

/** Keeps the digests that an export computed, for later answers. It delays no answer, and fails none. */
function keep(
  blocks: Block[],
  task: ExportTask,
  cursor: string | undefined,
  c: Context<Edge>,
  { database, log }: Services,
): void {
  if (!('selection' in task) || !isKept(task.selection) || cursor === undefined) return
  keepBlocks(database, task.selection, cursor, { blocks, tables: undefined }).catch((error: unknown) =>
    log('blocks.notKept', { requestId: c.get('requestId'), error }),
  )
}

/** Tells telemetry how a streamed export ended, once, whatever ends it. */
export interface ExportReport {
  /** Only the first call counts. @param summary of one that was sent whole */
  ended(outcome: ExportOutcome, summary?: ExportSummary): void
  /** Before the first byte. What is wrong with the request is no failure of the export. */
  refused(error: unknown): void
}

export function reportExport(
  c: Context<Edge>,
  { telemetry }: Pick<Services, 'telemetry'>,
  task: Pick<ExportTask | LedgersTask, 'what' | 'form'>,
): ExportReport {
  const startedAt = Date.now()
  let isOver = false
  const ended: ExportReport['ended'] = (outcome, summary) => {
    if (isOver) return
    isOver = true
    telemetry.exportEnded({
      kind: 'since' in task && task.since !== undefined ? 'changes' : task.what,
      format: task.form,
      outcome,
      rows: summary?.rows ?? 0,
      bytes: summary?.bytes ?? 0,
      startedAt,
      facts: summary?.facts,
      trace: c.get('telemetry').trace,
      requestId: c.get('requestId'),
    })
  }
  const { outgoing } = c.env
  outgoing.once('close', () => ended('left'))
  return {
    ended,
    refused: (error) => {
      if (error instanceof AppError && error.status < 500) isOver = true
      else ended('failed')
    },
  }
}

/** The body of a streamed answer, read from an export or a file. */

export interface BodySource {
  /** Undefined at the end. */
  read(): Promise<Uint8Array | undefined>
  /** The kernel has these bytes, so their buffer may be reused. */
  recycle?(bytes: Uint8Array): void
  /** Everything is read and the answer has not ended yet: the time to add trailers. */
  ended?(): void
  /** The client has stopped reading. */
  cancel(): void
}

/**
 * Pull only: the socket requests each chunk.
 *
 * All failures are treated the same way: the connection is destroyed before the last byte, so that a partial body
 * never looks complete, and one line is logged. `pull()` throws nothing: the adapter would print the error among the
 * log lines and write it into the body. A client that disconnects is not a failure.
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
          // The answer has begun and its write buffer is empty: the kernel has all chunks before.
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
