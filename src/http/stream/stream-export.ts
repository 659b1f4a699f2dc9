/**
 * Answers with an export that streams from a thread: conditional headers, then chunks, then trailers that prove that
 * the transfer is complete.
 */
import type { Context } from 'hono'
import { AppError } from '../../errors.ts'
import { type ExportReader, startExport } from '../../exports/run/start.ts'
import type { ExportTask } from '../../exports/run/task.ts'
import { mediaTypes } from '../../formats/file-formats.ts'
import { attachment } from '../../store/attachment.ts'
import { etagOf, holdsEtag, namesSelection } from '../representation.ts'
import type { Edge } from '../route.ts'
import type { Services } from '../services.ts'
import { type BodySource, streamBody } from './stream-body.ts'

export interface StreamedExport {
  /** The task of the thread. */
  task: ExportTask
  /** Name of the file, without its ending. */
  fileName: string
  /** Undefined if the answer concerns no single ledger, and thus has no ETag. */
  ledger: LedgerState | undefined
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
  const { ledger } = download
  const state = stateHeaders(download, ledger?.cursor)
  if (ledger) {
    checkIfMatch(c, ledger, ledger.cursor)
    if (state.ETag !== undefined && holdsEtag(c.req.header('if-none-match'), state.ETag))
      return c.body(null, 304, { ...state, ...caching })
  }
  if (c.req.method === 'HEAD') return c.body(null, 200, { ...state, ...headersOf(download) })

  const reader = startExport(services.threads, download.task)
  const { outgoing } = c.env
  // Covers every way in which the client disconnects, even while the database is searching for the first row.
  outgoing.once('close', () => reader.cancel())
  // It may have disconnected while the selection was checked.
  if (outgoing.closed) reader.cancel()
  try {
    const { cursor } = await reader.head()
    // The thread's snapshot may be newer than the state checked above.
    if (ledger && cursor !== undefined) checkIfMatch(c, ledger, cursor)
    // Errors before the first chunk are answered with their status.
    const first = await reader.read()
    const source = sourceOf(reader, first, c, services)
    return c.body(streamBody(c, services, 'stream.broken', source), 200, {
      ...stateHeaders(download, cursor),
      ...headersOf(download),
      // Set explicitly, because the adapter would otherwise buffer a short answer and add a Content-Length, and an
      // answer with a length has no trailers. HTTP/1.0 clients get it too: without it they would read any end of the
      // connection, even after a failure, as the end of the body.
      'Transfer-Encoding': 'chunked',
      Trailer: 'X-Row-Count, X-Content-SHA256',
    })
  } catch (error) {
    // The client has disconnected: there is nothing to answer, and nothing has failed.
    if (reader.cancelled) return c.body(null)
    reader.cancel()
    throw error
  }
}

function checkIfMatch(c: Context<Edge>, { tagAt }: LedgerState, cursor: string): void {
  const ifMatch = c.req.header('if-match')
  if (ifMatch !== undefined && !namesSelection(ifMatch, tagAt(cursor))) {
    throw new AppError('ERR-PRECONDITION-FAILED')
  }
}

/** The headers that name the state of the ledger and these bytes of it. */
function stateHeaders({ ledger, task }: StreamedExport, cursor: string | undefined): Record<string, string> {
  if (!ledger || cursor === undefined) return {}
  const etag = etagOf(ledger.tagAt(cursor), task, 'after' in task ? task.after : undefined)
  return { ETag: etag, 'X-Ledger-Cursor': cursor }
}

const caching = {
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

function sourceOf(
  reader: ExportReader,
  first: Uint8Array | undefined,
  c: Context<Edge>,
  { log, readiness }: Services,
): BodySource {
  let next = first
  const recordFailure = (error: unknown): never => {
    readiness.recordFailure(error)
    throw error
  }
  const started = performance.now()
  return {
    read: async () => {
      const chunk = next ?? (await reader.read().catch(recordFailure))
      next = undefined
      return chunk
    },
    recycle: (chunk) => reader.recycle(chunk),
    ended: () => {
      const { rows, bytes, sha256 } = reader.summary!
      c.env.outgoing.addTrailers({ 'X-Row-Count': String(rows), 'X-Content-SHA256': sha256 })
      const ms = Math.round(performance.now() - started)
      log('stream.sent', { requestId: c.get('requestId'), rows, bytes, ms })
    },
    cancel: () => reader.cancel(),
  }
}
