/** Routes that answer with many ledgers, one after the other (docs/spec/ledgers.md#changes). */
import { z } from '@hono/zod-openapi'
import { opensEmployees } from '../../../auth/principal.ts'
import { limits } from '../../../config.ts'
import { AppError } from '../../../errors.ts'
import type { AskedLedger, LedgersTask, NextLedger } from '../../../exports/run/ledgers/task.ts'
import { mediaTypes } from '../../../formats/file-formats.ts'
import { authenticateAgain } from '../../authenticate.ts'
import { checkBody } from '../../body.ts'
import { accountingFolderId, version } from '../../query.ts'
import { representationFor } from '../../representation.ts'
import { type Route, type TokenCall, tokenRoute } from '../../route.ts'
import { ledgerStreamHeaders, onlyFolder } from '../../schemas/answer-headers.ts'
import { streamLedgers } from '../../stream/stream-ledgers.ts'
import { askedLedgers, type LedgersBody } from './changes-body.ts'
import { readOpenedCursor, readOpenedIds } from './opened-folders.sql.ts'

interface ManyLedgers extends Pick<Route, 'operationId' | 'path' | 'summary'> {
  body: { schema: LedgersBody; example: object }
  what: LedgersTask['what']
  form: LedgersTask['form']
  answered: { description: string; schema: z.ZodType }
  /** What is known of a ledger at a state without reading it. */
  known?: (call: TokenCall<unknown>, asked: AskedLedger, cursor: string) => Promise<NextLedger | undefined>
}

export function ledgersRoute(many: ManyLedgers): Route {
  const { operationId, path, summary, body, form, answered } = many
  const route: Route = tokenRoute({
    method: 'post',
    operationId,
    path,
    levels: ['api', 'firm'],
    groups: ['movements', 'resources'],
    summary,
    query: z.strictObject({ version, accountingFolderId }),
    headers: onlyFolder,
    body: { ...body, mediaTypes: ['application/json'] },
    atOnce: { name: 'ledgers of token', most: limits.ledgersAtOnceMax },
    answers: {
      200: {
        description: answered.description,
        headers: ledgerStreamHeaders,
        content: { [mediaTypes[form]]: { schema: answered.schema } },
      },
    },
    answer: (call) => answerLedgers(call, route, many),
  })
  return route
}

async function answerLedgers(call: TokenCall<unknown>, route: Route, many: ManyLedgers): Promise<Response> {
  const { c, services, principal } = call
  const { what, form } = many
  const { encoding } = representationFor(c, [form])
  const body = checkBody(many.body.schema, call.body)
  const only = c.get('folderId')
  const asked = await askedLedgers(body, () => readOpenedIds(services.database, principal, only))
  const facts = c.get('audited')
  if (facts) facts.selection = { ...facts.selection, ledgers: body.ledgers ? asked.length : 'all' }
  const { schemaId, tokenId } = principal
  const { timeZone } = services.config
  const withEmployees = opensEmployees(principal)
  const task = { what, form, encoding, schemaId, tokenId, withEmployees, timeZone } as LedgersTask
  return streamLedgers(c, services, task, nextOf(call, route, many, asked, only))
}

/**
 * Gives each ledger when it is asked for, if the caller may still read it.
 * @param only the one folder that the request concerns
 */
function nextOf(
  call: TokenCall<unknown>,
  route: Route,
  { known }: ManyLedgers,
  ledgers: AskedLedger[],
  only: string | undefined,
) {
  const { c, services, principal } = call
  const remaining = ledgers.values()
  const { database, config } = services
  return async (): Promise<NextLedger> => {
    const { value: asked, done } = remaining.next()
    if (done) return { kind: 'end' }
    const [, cursor] = await Promise.all([
      authenticateAgain(route, c, services),
      only === undefined || only === asked.society
        ? readOpenedCursor(database, principal, asked.society, config.timeZone)
        : undefined,
    ])
    if (cursor !== undefined) return (await known?.(call, asked, cursor)) ?? { kind: 'ledger', asked, cursor }
    const { code, message } = new AppError('ERR-FOLDER-NOT-FOUND')
    return { kind: 'refused', asked, refusal: { code, message } }
  }
}
