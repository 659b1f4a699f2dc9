/** The headers of requests and answers, and streamed answers, as the OpenAPI document shows them. */
import { z } from '@hono/zod-openapi'
import { mediaTypes, type StreamedForm, streamedForms } from '../../formats/file-formats.ts'
import { idSchema } from '../query.ts'

type Headers = Record<string, { description: string; schema: { type: 'string' | 'integer' } }>

const text = (description: string) => ({ description, schema: { type: 'string' as const } })
const number = (description: string) => ({ description, schema: { type: 'integer' as const } })

/** Headers of every answer. */
export const requestIdHeader: Headers = {
  'x-request-id': text('The id that the request contained, or a new one'),
}

/** Headers of every answer to a known token. */
export const rateHeaders: Headers = {
  'X-Rate-Limit-Total': number('Requests of the token in one window'),
  'X-Rate-Limit-Remaining': number('Requests left in this window'),
  'X-Rate-Limit-Reset': number('When the next window begins, epoch milliseconds'),
}

/** Headers of errors. Each is sent with the statuses that require it. */
export const errorAnswerHeaders: Headers = {
  'Accept-Patch': text('With 415 to a PATCH: the accepted media types'),
  Allow: text('With 405: the methods of this address'),
  'Cache-Control': text('no-store'),
  'Retry-After': number('With 429 and 503: seconds to wait'),
  'WWW-Authenticate': text('With 401: Bearer'),
}

const cacheHeaders: Headers = {
  'Cache-Control': text('private, no-cache'),
  Vary: text('The headers that the answer depends on'),
}

/** Headers of an answer with an ETag, and of its 304. */
export const etagHeaders: Headers = {
  ETag: text('Names these bytes. It changes when the ledger of the folder changes. Not on answers to since'),
  'X-Ledger-Cursor': text('Names the state of the ledger, the same on every route'),
  ...cacheHeaders,
}

/** Headers of the list of ledgers, and of its 304. */
export const listHeaders: Headers = {
  ETag: text('Names these bytes. It changes when any ledger of the list does, or one comes or leaves'),
  ...cacheHeaders,
}

/** Header of answers with digests of movements, and of their 304. */
export const digestHeader: Headers = {
  'X-Ledger-Digest': text(
    'The SHA-256 of all digests as bytes, in order, in hexadecimal. Absent from an answer to HEAD that would have to compute it',
  ),
}

export const encodingHeader: Headers = {
  'Content-Encoding': text('zstd or gzip, if Accept-Encoding allows it'),
}

/** Headers of a streamed answer. An answer with an ETag has `etagHeaders`, too. */
const streamHeaders: Headers = {
  ...cacheHeaders,
  'Content-Disposition': text('attachment, with a file name'),
  ...encodingHeader,
  Trailer: text('X-Row-Count, X-Content-SHA256; only the first with Want-Content-Digest: sha-256=0'),
}

/** Headers of an answer with many ledgers. */
export const ledgerStreamHeaders: Headers = {
  ...cacheHeaders,
  ...encodingHeader,
}

/** Header of a request that may concern many folders. */
export const onlyFolder = z.object({
  'society-id': z
    .string()
    .optional()
    .openapi({ ...idSchema, description: 'If present, the answer has only this folder' }),
})

const streamRequest = z.object({
  'want-content-digest': z
    .string()
    .optional()
    .openapi({
      description:
        'Preferences for digests (RFC 9530). With sha-256=0 the answer has no trailer X-Content-SHA256; anything else ' +
        'has no effect',
      example: 'sha-256=0',
    }),
})

export const ifNoneMatch = {
  'if-none-match': z.string().optional().openapi({
    description:
      'ETags that the caller has. The answer is 304 if one of them is current, except an answer to since',
  }),
}

const conditionalRequest = streamRequest.extend({
  ...ifNoneMatch,
  'if-match': z.string().optional().openapi({
    description:
      'ETag of an earlier answer for the same selection. The answer is 412 if the ledger has changed',
  }),
})

/**
 * Headers and answers of a route that streams items, in each form.
 * @param items schema of the JSON body; if the collection has only one item, the body is that item
 * @param line schema of a line of NDJSON
 * @param etag headers of answers with an ETag, and of the 304 for a caller that has this state already
 */
export function streamed(items: z.ZodType, line: z.ZodType, etag?: Headers) {
  const schemas: Record<StreamedForm, z.ZodType> = { json: items, ndjson: line }
  const answer = {
    headers: { ...etag, ...streamHeaders },
    description:
      'One item per line with Accept: application/x-ndjson. The trailers X-Row-Count and X-Content-SHA256 (of the ' +
      'body before compression) prove that the transfer is complete',
    content: Object.fromEntries(streamedForms.map((form) => [mediaTypes[form], { schema: schemas[form] }])),
  }
  if (!etag) return { headers: streamRequest, answers: { 200: answer } }
  const unchanged = {
    headers: etag,
    description: 'The representation named by If-None-Match is still current',
  }
  return { headers: conditionalRequest, answers: { 200: answer, 304: unchanged } }
}
