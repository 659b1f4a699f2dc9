/**
 * Answers with an export from a thread, streamed: conditional requests, headers, then chunk by chunk with trailers that
 * prove that the transfer is whole.
 */
import type { Context } from 'hono'
import { AppError } from '../errors.ts'
import type { ExportReader } from '../exports/run/start.ts'
import { mediaTypes } from '../formats/file-formats.ts'
import { attachment } from '../store/attachment.ts'
import type { Representation } from './representation.ts'
import { etagOf, holdsEtag, namesSelection, negotiate } from './representation.ts'
import type { Edge } from './route.ts'
import type { Services } from './services.ts'

export interface StreamedExport {
  representation: Representation
  /** Name of the file, without its ending. */
  fileName: string
  /** Undefined where the answer depends on no ledger: it has no ETag. */
  ledger: LedgerState | undefined
  /** The item behind which a resumed answer begins. */
  after: string | undefined
  start: () => ExportReader
}

export interface LedgerState {
  /** As looked at before the export starts; what its snapshot reads may be newer. */
  version: string
  /** Names what is selected at a version of the ledger. */
  tagAt: (version: string) => string
}

/** The representation that a request asks for. @throws {AppError} ERR-NOT-ACCEPTABLE */
export function representationFor(c: Context<Edge>): Representation {
  const representation = negotiate(c.req.header('accept'), c.req.header('accept-encoding'))
  if (representation) return representation
  throw new AppError('ERR-NOT-ACCEPTABLE', {
    message: `Served are ${Object.values(mediaTypes).join(' and ')}`,
  })
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

  const reader = asked.start()
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
    return c.body(stream(first, reader, c, services), 200, {
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

function etagAt({ ledger, representation, after }: StreamedExport, version: string | undefined) {
  return ledger && version !== undefined ? etagOf(ledger.tagAt(version), representation, after) : undefined
}

const caching = {
  'Cache-Control': 'private, no-cache',
  Vary: 'Accept, Accept-Encoding, Authorization, society-id',
}

function headersOf(
  { representation: { form, encoding }, fileName }: StreamedExport,
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

/**
 * Pull only: the socket asks for each chunk. A failure breaks the connection off before the last chunk, so that what
 * arrived never looks complete.
 */
function stream(
  first: Uint8Array | undefined,
  reader: ExportReader,
  c: Context<Edge>,
  { log, readiness }: Services,
): ReadableStream<Uint8Array> {
  let next = first
  let sent: Uint8Array | undefined
  const { outgoing } = c.env
  const started = performance.now()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          // The answer has begun and nothing waits to be written: the chunk before is with the kernel, its buffer free.
          if (sent && outgoing.headersSent && outgoing.writableLength === 0) reader.giveBack(sent)
          const chunk = next ?? (await reader.read())
          next = undefined
          sent = chunk
          if (chunk) return controller.enqueue(chunk)
        } catch (error) {
          readiness.learn(error)
          if (!reader.cancelled) log('stream.broken', { requestId: c.get('requestId'), error })
          // Not thrown: the adapter would print it among the lines of the log, and say it in the body.
          outgoing.destroy()
          return
        }
        const { rows, bytes, sha256 } = reader.summary!
        outgoing.addTrailers({ 'X-Row-Count': String(rows), 'X-Content-SHA256': sha256 })
        const ms = Math.round(performance.now() - started)
        log('stream.sent', { requestId: c.get('requestId'), rows, bytes, ms })
        controller.close()
      },
      cancel: () => reader.cancel(),
    },
    { highWaterMark: 0 },
  )
}
