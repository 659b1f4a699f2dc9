/** `GET /api/v1/mad/movements`: the whole selection as one streamed answer. */

import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { inTenant } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import type { MovementsSelected } from '../exports/movements.sql.ts'
import { readSelected } from '../exports/movements.sql.ts'
import type { MovementsReader } from '../exports/movements.ts'
import { startMovements } from '../exports/movements.ts'
import type { Selection } from '../exports/selection.ts'
import { selectionTag } from '../exports/selection.ts'
import { conditionalRequest, etagHeaders, streamHeaders } from './answer-headers.ts'
import type { Services } from './app.ts'
import { Movement } from './movement-schema.ts'
import type { MovementsQuery } from './movements-query.ts'
import { movementsQuery, selectionOf } from './movements-query.ts'
import type { Representation } from './representation.ts'
import { attachment, etagOf, holdsEtag, mediaTypes, namesSelection, negotiate } from './representation.ts'
import type { Edge, FolderCall } from './route.ts'
import { folderRoute } from './route.ts'

export const movements = folderRoute({
  method: 'get',
  path: '/api/v1/mad/movements',
  levels: ['api', 'firm'],
  summary: 'Accounting movements of a fiscal year or a period, streamed',
  query: movementsQuery,
  headers: conditionalRequest,
  answers: {
    200: {
      headers: { ...etagHeaders, ...streamHeaders },
      description:
        'An array of movements, or one movement a line (Accept: application/x-ndjson). The trailers X-Row-Count ' +
        'and X-Content-SHA256 (of the body before compression) prove that the transfer is whole',
      content: {
        [mediaTypes.json]: { schema: z.array(Movement) },
        [mediaTypes.ndjson]: { schema: Movement },
      },
    },
    304: {
      headers: etagHeaders,
      description: 'The representation named by If-None-Match is still what is selected',
    },
  },
  answer: answerMovements,
})

async function answerMovements(call: FolderCall<MovementsQuery>): Promise<Response> {
  const { c, query, services, principal, folderId } = call
  const representation = negotiate(c.req.header('accept'), c.req.header('accept-encoding'))
  if (!representation) {
    throw new AppError('ERR-NOT-ACCEPTABLE', {
      message: `Served are ${Object.values(mediaTypes).join(' and ')}`,
    })
  }
  const { schemaId } = principal
  const selection = selectionOf(query, { schemaId, folderId, timeZone: services.config.timeZone })
  const selected = await inTenant(services.database, schemaId, (client) => readSelected(client, selection))
  if (!selected) throw new AppError('ERR-FOLDER-NOT-FOUND')
  if (selection.exerciceId !== undefined && !selected.period) throw new AppError('ERR-EXERCICE-NOT-FOUND')

  const headersAt = (ledgerVersion: string) =>
    headersOf(selection, selected, representation, query.after, ledgerVersion)
  const { ETag: etag, ...lasting } = headersAt(selected.ledgerVersion)
  checkIfMatch(c, selection, selected.ledgerVersion)
  if (holdsEtag(c.req.header('if-none-match'), etag!)) {
    return c.body(null, 304, {
      ETag: etag!,
      'Cache-Control': lasting['Cache-Control']!,
      Vary: lasting['Vary']!,
    })
  }
  if (c.req.method === 'HEAD') return c.body(null, 200, headersAt(selected.ledgerVersion))

  const reader = startMovements(services.threads, {
    selection,
    after: query.after,
    ...representation,
  })
  const { outgoing } = c.env
  // Covers every way in which the client leaves, also while the database still looks for the first row.
  outgoing.once('close', () => reader.cancel())
  // It may have left while the selection was looked at above.
  if (outgoing.closed) reader.cancel()
  try {
    const { ledgerVersion } = await reader.head()
    // What the thread reads may be newer than what was looked at above.
    checkIfMatch(c, selection, ledgerVersion)
    // Errors up to here, and up to the first chunk, are answered with their status.
    const first = await reader.read()
    return c.body(stream(first, reader, c, services), 200, {
      ...headersAt(ledgerVersion),
      // Said outright, because the adapter would otherwise collect a short answer first and give it a Content-Length,
      // and an answer with a length has no trailers.
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

function checkIfMatch(c: Context<Edge>, selection: Selection, ledgerVersion: string): void {
  const ifMatch = c.req.header('if-match')
  if (ifMatch !== undefined && !namesSelection(ifMatch, selectionTag(selection, ledgerVersion))) {
    throw new AppError('ERR-PRECONDITION-FAILED')
  }
}

function headersOf(
  selection: Selection,
  { reference, period }: MovementsSelected,
  representation: Representation,
  after: string | undefined,
  ledgerVersion: string,
): Record<string, string> {
  const { start, end } = selection.period ?? period!
  const fileName = `${reference ?? selection.folderId}_movements_${start}_${end}.${representation.form}`
  return {
    ETag: etagOf(selectionTag(selection, ledgerVersion), representation, after),
    'Cache-Control': 'private, no-cache',
    Vary: 'Accept, Accept-Encoding, Authorization, society-id',
    'Content-Type': mediaTypes[representation.form],
    'Content-Disposition': attachment(fileName),
    ...(representation.encoding === 'identity' ? {} : { 'Content-Encoding': representation.encoding }),
  }
}

/**
 * Pull only: the socket asks for each chunk. A failure breaks the connection off before the last chunk, so that what
 * arrived never looks complete.
 */
function stream(
  first: Uint8Array | undefined,
  reader: MovementsReader,
  c: Context<Edge>,
  { log }: Services,
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
          if (!reader.cancelled) log('movements.broken', { requestId: c.get('requestId'), error })
          // Not thrown: the adapter would print it among the lines of the log, and say it in the body.
          outgoing.destroy()
          return
        }
        const { rows, bytes, sha256 } = reader.summary!
        outgoing.addTrailers({ 'X-Row-Count': String(rows), 'X-Content-SHA256': sha256 })
        const ms = Math.round(performance.now() - started)
        log('movements.sent', { requestId: c.get('requestId'), rows, bytes, ms })
        controller.close()
      },
      cancel: () => reader.cancel(),
    },
    { highWaterMark: 0 },
  )
}
