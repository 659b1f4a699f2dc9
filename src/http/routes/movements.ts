/** `GET /api/v1/mad/movements`: the whole selection as one streamed answer. */

import { z } from '@hono/zod-openapi'
import { mediaTypes } from '../../formats/file-formats.ts'
import { folderRoute } from '../route.ts'
import { conditionalRequest, etagHeaders, streamHeaders } from '../schemas/answer-headers.ts'
import { Movement } from '../schemas/movement-schema.ts'
import { movementsQuery } from './movements-query.ts'
import { answerSelected } from './selected.ts'

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
  answer: (call) => answerSelected(call, 'movements'),
})
