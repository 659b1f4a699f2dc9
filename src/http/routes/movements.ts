/** `GET /api/v1/mad/movements`: the whole selection as one streamed answer. */
import { z } from '@hono/zod-openapi'
import { folderRoute } from '../route.ts'
import { conditionalRequest } from '../schemas/answer-headers.ts'
import { Movement } from '../schemas/movement-schema.ts'
import { conditionalAnswers } from '../schemas/streamed-answers.ts'
import { movementsQuery } from './movements-query.ts'
import { answerSelected } from './selected.ts'

export const movements = folderRoute({
  method: 'get',
  path: '/api/v1/mad/movements',
  levels: ['api', 'firm'],
  summary: 'Accounting movements of a fiscal year or a period, streamed',
  query: movementsQuery,
  headers: conditionalRequest,
  answers: conditionalAnswers(z.array(Movement), Movement),
  answer: (call) => answerSelected(call, 'movements'),
})
