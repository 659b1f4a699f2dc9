/** The headers of requests and answers as the OpenAPI document shows them. */
import { z } from '@hono/zod-openapi'

type Headers = Record<string, { description: string; schema: { type: 'string' | 'integer' } }>

const text = (description: string) => ({ description, schema: { type: 'string' as const } })
const number = (description: string) => ({ description, schema: { type: 'integer' as const } })

/** On whatever is answered. */
export const requestIdHeader: Headers = {
  'x-request-id': text('The id that the request carried, or a new one'),
}

/** On whatever is answered to a known token. */
export const rateHeaders: Headers = {
  'X-Rate-Limit-Total': number('Requests of the token in one window'),
  'X-Rate-Limit-Remaining': number('Requests left in this window'),
  'X-Rate-Limit-Reset': number('When the next window begins, epoch milliseconds'),
}

/** On errors, each where its status asks for it. */
export const errorAnswerHeaders: Headers = {
  'Accept-Patch': text('With 415 to a PATCH: the media types it takes'),
  Allow: text('With 405: the methods of this address'),
  'Cache-Control': text('no-store'),
  'Retry-After': number('With 429 and 503: seconds to wait'),
  'WWW-Authenticate': text('With 401: Bearer'),
}

/** Of an answer that is named by an ETag, and of the 304 in its place. */
export const etagHeaders: Headers = {
  ETag: text('Names these bytes. It changes when the ledger of the folder changes'),
  'Cache-Control': text('private, no-cache'),
  Vary: text('The headers that the answer depends on'),
}

/** Of a streamed answer, beside `etagHeaders`. */
export const streamHeaders: Headers = {
  'Content-Disposition': text('attachment, with a file name'),
  'Content-Encoding': text('zstd or gzip, where Accept-Encoding takes it'),
  Trailer: text('X-Row-Count, X-Content-SHA256'),
}

/** What a request may ask of an answer with an ETag. */
export const conditionalRequest = z.object({
  'if-none-match': z
    .string()
    .optional()
    .openapi({ description: 'ETags that the caller has: 304 for one of them' }),
  'if-match': z
    .string()
    .optional()
    .openapi({ description: 'ETag of the export that `after` continues: 412 where the ledger has changed' }),
})
