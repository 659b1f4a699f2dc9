/**
 * Answers with an export from a thread, streamed: conditional requests, headers, then chunk by chunk with trailers that
 * prove that the transfer is whole.
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
  /** What a thread is asked for. */
  task: ExportTask
  /** Name of the file, without its ending. */
  fileName: string
  /** Undefined where the answer depends on no ledger: it has no ETag. */
  ledger: LedgerState | undefined
}

export interface LedgerState {
  /** As looked at before the export starts; what its snapshot reads may be newer. */
  version: string
  /** Names what is selected at a version of the ledger. */
  tagAt: (version: string) => string
}

export async function streamExport(
  c: Context<Edge>,
  services: Services,
  asked: StreamedExport,
): Promise<Response> {
  const { ledger } = asked
  const etag = etagAt(asked, ledger?.version)
  if (ledger) {
    checkIfMatch(c, ledger, ledger.version)
    if (etag !== undefined && holdsEtag(c.req.header('if-none-match'), etag)) {
      return c.body(null, 304, { ETag: etag, ...caching })
    }
  }
  if (c.req.method === 'HEAD') return c.body(null, 200, headersOf(asked, etag))

  const reader = startExport(services.threads, asked.task)
  const { outgoing } = c.env
  // Covers every way in which the client leaves, also while the database still looks for the first row.
  outgoing.once('close', () => reader.cancel())
  // It may have left while the selection was looked at.
  if (outgoing.closed) reader.cancel()
  try {
    const { ledgerVersion } = await reader.head()
    // What the thread reads may be newer than what was looked at above.
    if (ledger) checkIfMatch(c, ledger, ledgerVersion)
    // Errors up to here, and up to the first chunk, are answered with their status.
    const first = await reader.read()
    const source = sourceOf(reader, first, c, services)
    return c.body(streamBody(c, services, 'stream.broken', source), 200, {
      ...headersOf(asked, etagAt(asked, ledgerVersion)),
      // Said outright, because the adapter would otherwise collect a short answer first and give it a Content-Length,
      // and an answer with a length has no trailers. Clients of HTTP/1.0 get it too: they would take any end of the
      // connection, a failure's too, for the end of the body.
      'Transfer-Encoding': 'chunked',
      Trailer: 'X-Row-Count, X-Content-SHA256',
    })
  } catch (error) {
    // Nobody is there to be answered, and nothing has failed.
    if (reader.cancelled) return c.body(null)
    reader.cancel()
    throw error
  }
}

function checkIfMatch(c: Context<Edge>, { tagAt }: LedgerState, version: string): void {
  const ifMatch = c.req.header('if-match')
  if (ifMatch !== undefined && !namesSelection(ifMatch, tagAt(version))) {
    throw new AppError('ERR-PRECONDITION-FAILED')
  }
}

function etagAt({ ledger, task }: StreamedExport, version: string | undefined): string | undefined {
  if (!ledger || version === undefined) return undefined
  return etagOf(ledger.tagAt(version), task, 'after' in task ? task.after : undefined)
}

const caching = {
  'Cache-Control': 'private, no-cache',
  Vary: 'Accept, Accept-Encoding, Authorization, society-id',
}

function headersOf(
  { task: { form, encoding }, fileName }: StreamedExport,
  etag: string | undefined,
): Record<string, string> {
  return {
    ...(etag === undefined ? {} : { ETag: etag }),
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
  const learn = (error: unknown): never => {
    readiness.learn(error)
    throw error
  }
  const started = performance.now()
  return {
    read: async () => {
      const chunk = next ?? (await reader.read().catch(learn))
      next = undefined
      return chunk
    },
    giveBack: (chunk) => reader.giveBack(chunk),
    ended: () => {
      const { rows, bytes, sha256 } = reader.summary!
      c.env.outgoing.addTrailers({ 'X-Row-Count': String(rows), 'X-Content-SHA256': sha256 })
      const ms = Math.round(performance.now() - started)
      log('stream.sent', { requestId: c.get('requestId'), rows, bytes, ms })
    },
    cancel: () => reader.cancel(),
  }
}
