/** The answers of routes that stream items, in each form. */
import type { z } from '@hono/zod-openapi'
import { mediaTypes, type StreamedForm, streamedForms } from '../../formats/file-formats.ts'
import { etagHeaders, type Headers, streamHeaders } from './answer-headers.ts'

/**
 * @param items the body in JSON; it is one item if the collection has only one
 * @param line a line of NDJSON
 */
export function streamedAnswer(items: z.ZodType, line: z.ZodType) {
  const schemas: Record<StreamedForm, z.ZodType> = { json: items, ndjson: line }
  return {
    headers: streamHeaders,
    description:
      'One item per line with Accept: application/x-ndjson. The trailers X-Row-Count and X-Content-SHA256 (of the ' +
      'body before compression) prove that the transfer is complete',
    content: Object.fromEntries(streamedForms.map((form) => [mediaTypes[form], { schema: schemas[form] }])),
  }
}

/** The same with an ETag, and the 304 for a caller that has it: the answers to `conditionalRequest`. */
export function conditionalAnswers(items: z.ZodType, line: z.ZodType, further: Headers = {}) {
  const answer = streamedAnswer(items, line)
  const headers = { ...etagHeaders, ...further }
  return {
    200: { ...answer, headers: { ...headers, ...answer.headers } },
    304: {
      headers,
      description: 'The representation named by If-None-Match is still current',
    },
  }
}
