/** `POST /mad/ledgers/changes`: many ledgers in one answer (docs/spec/ledgers.md#changes). */
import { z } from '@hono/zod-openapi'
import { ledgersRoute } from './answer-ledgers.ts'
import { changesBody } from './changes-body.ts'

export const ledgerChanges = ledgersRoute({
  operationId: 'listLedgerChanges',
  path: '/api/v1/mad/ledgers/changes',
  summary: 'What changed in many ledgers, or all of them, in one stream of rows that prove themselves',
  body: {
    schema: changesBody,
    example: {
      ledgers: [
        { society: '26002', since: '4711.1.jWShZ-gx.EeSGmSmtIuJfr19E1z0hHo', entries: [['0', '8191']] },
        { society: '26003' },
      ],
    },
  },
  what: 'ledgers',
  form: 'ledgers',
  answered: {
    description:
      'Lines in UTF-8. One that begins with { is JSON and says what follows or what came; any other is a row in the ' +
      "text format of PostgreSQL's COPY. The last line has the counts of ledgers: an answer without it is broken",
    schema: z.string().openapi({ example: answerExample() }),
  },
})

function answerExample(): string {
  return [
    { ledger: '26002', since: null, cursor: '4711.1.jWShZ-gx.EeSGmSmtIuJfr19E1z0hHo', entries: [] },
    { refused: '26003', code: 'ERR-FOLDER-NOT-FOUND', message: 'There is no such folder' },
    { whole: 1, refusals: 1 },
  ]
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('')
}
