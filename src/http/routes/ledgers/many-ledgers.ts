/** Routes that answer with many ledgers, one after the other (docs/spec/ledgers.md#changes). */
import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { errorCodes } from '../../../../packages/contract/src/error-codes.ts'
import { wholeTables } from '../../../../packages/contract/src/ledger-tables.ts'
import { answeredRequest } from '../../../audit/audit-trail.ts'
import { opensEmployees } from '../../../auth/principal.ts'
import { limits } from '../../../config.ts'
import { idPattern, notAnId, readId } from '../../../db/literal.ts'
import { AppError } from '../../../errors.ts'
import { askForBlocks } from '../../../exports/blocks/kept-blocks.sql.ts'
import { blocksLine, refused } from '../../../exports/run/ledgers/lines.ts'
import type {
  AskedLedger,
  EndedLedger,
  LedgerEnd,
  LedgersTask,
  NextLedger,
} from '../../../exports/run/ledgers/task.ts'
import { startLedgers } from '../../../exports/run/start.ts'
import { wholeFolder } from '../../../exports/selection.ts'
import { mediaTypes } from '../../../formats/file-formats.ts'
import { named } from '../../../formats/items/values.ts'
import { type EntryRange, mergedRanges } from '../../../ledger/changes/entry-ranges.ts'
import { authenticateAgain } from '../../authenticate.ts'
import { checkBody } from '../../body.ts'
import { accountingFolderId, idSchema, rangeSchema, version } from '../../query.ts'
import { caching, contentHeaders, representationFor } from '../../representation.ts'
import { type Edge, type Route, type TokenCall, tokenRoute } from '../../route.ts'
import { ledgerStreamHeaders, onlyFolder } from '../../schemas/answer-headers.ts'
import { Block, cursorExample } from '../../schemas/changes-schema.ts'
import type { Services } from '../../services.ts'
import { answerFrom, keep } from '../../stream/stream-export.ts'
import { cursorPattern } from '../movements-query.ts'
import { listedFor } from './list.ts'
import { readListedCursor, readListedIds } from './listed-ledgers.sql.ts'

const ledgersMax = 10_000
const rangesMax = 1_000

const id = z
  .string()
  .regex(idPattern, notAnId)
  .transform((digits) => readId(digits)!)
  .openapi(idSchema)

const isRange = (value: unknown) =>
  Array.isArray(value) &&
  value.length === 2 &&
  value.every((id) => typeof id === 'string' && readId(id) === id) &&
  BigInt(value[0]) <= BigInt(value[1]) &&
  BigInt(value[1]) <= Number.MAX_SAFE_INTEGER

/**
 * Checks a range in one step. As a tuple of ids, the 260,000 ranges that a body may have would take 430 ms of the main
 * thread.
 */
const range = z
  .custom<EntryRange>(isRange, 'must be two ids as texts, the lower first: ["0","8191"]')
  .openapi('EntryRange', rangeSchema)

const heldSha256 = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'must be a SHA-256: 64 hexadecimal digits in lower case')

const society = id.openapi({ ...idSchema, description: 'Id of the folder' })

const ledger = z
  .strictObject({
    society,
    since: z.string().regex(cursorPattern, 'is not a cursor').optional().openapi({
      description:
        'The cursor of the copy: only movements of entries that changed since are sent. Absent: all',
    }),
    entries: z.array(range).min(1).max(rangesMax).optional().openapi({
      description: 'With since: further ranges of entry ids to send, both ends included',
    }),
    tables: z
      .strictObject(Object.fromEntries(wholeTables.map((name) => [name, heldSha256.optional()])))
      .openapi('HeldTables')
      .optional()
      .openapi({
        description:
          'SHA-256 of the rows that the copy has of a table. A table that still has the same is left out',
      }),
  })
  .openapi('AskedLedger')
  .refine(({ since, entries }) => since !== undefined || entries === undefined, {
    path: ['entries'],
    message: 'is only taken with since',
  })

/** @param absent what a body without ledgers means */
function bodyOf<Ledger extends z.ZodType<{ society: string }>>(ledger: Ledger, absent: string) {
  return z.strictObject({
    ledgers: z
      .array(ledger)
      .min(1)
      .max(ledgersMax)
      .superRefine((ledgers, context) => {
        const seen = new Set<string>()
        for (const [at, { society }] of ledgers.entries()) {
          if (seen.has(society))
            context.addIssue({ code: 'custom', path: [at, 'society'], message: 'is named twice' })
          seen.add(society)
        }
      })
      .optional()
      .openapi({ description: `In the order in which they are wanted. Absent: ${absent}` }),
  })
}

const changesBody = bodyOf(ledger, 'all folders of the token, in full').openapi('LedgerChangesRequest')

const blocksBody = bodyOf(
  z.strictObject({ society }).openapi('AskedLedgerBlocks'),
  'all folders of the token',
).openapi('LedgerBlocksRequest')

type LedgersBody = typeof changesBody | typeof blocksBody

interface ManyLedgers extends Pick<Route, 'operationId' | 'path' | 'summary'> {
  body: { schema: LedgersBody; example: object }
  what: LedgersTask['what']
  form: LedgersTask['form']
  answered: { description: string; schema: z.ZodType }
  /** Returns the lines of a ledger at a state, if they are known without reading it. */
  known?: (call: TokenCall<unknown>, asked: AskedLedger, cursor: string) => Promise<LedgerEnd | undefined>
}

function ledgersRoute(many: ManyLedgers): Route {
  const { operationId, path, summary, body, form, answered } = many
  const route: Route = tokenRoute({
    method: 'post',
    operationId,
    path,
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
  const { database, config } = services
  const { timeZone } = config
  const { what, form, known } = many
  const { encoding } = representationFor(c, [form])
  const body = checkBody(many.body.schema, call.body)
  const listed = listedFor(call)
  const ledgers = await askedLedgers(body, () => readListedIds(database, listed))
  const facts = c.get('audited')
  if (facts) facts.selection = { ...facts.selection, ledgers: body.ledgers ? ledgers.length : 'all' }
  const { schemaId, withEmployees } = listed
  const { tokenId } = principal
  const task = { what, form, encoding, schemaId, tokenId, withEmployees, timeZone } as LedgersTask
  const remaining = ledgers.values()
  /** Returns the ledger that the thread sends next, if the caller may still read it. */
  const next = async (): Promise<NextLedger> => {
    const { value: asked, done } = remaining.next()
    if (done) return undefined
    const [, cursor] = await Promise.all([
      authenticateAgain(route, c, services),
      readListedCursor(database, listed, asked.society, timeZone),
    ])
    if (cursor === undefined) return { asked, known: refused(asked, new AppError('ERR-FOLDER-NOT-FOUND')) }
    const lines = await known?.(call, asked, cursor)
    return lines ? { asked, known: lines } : { asked, cursor }
  }
  const audit = auditLedgers(c, services)
  const reader = startLedgers(services.threads, task, (ended) => {
    if (ended) {
      audit.ended(ended)
      const folder = wholeFolder({ schemaId, folderId: ended.asked.society }, timeZone)
      if (ended.kept) keep(c, services, folder, ended.cursor, ended.kept)
    }
    return next()
  })
  const headers = () => ({ ...caching, ...contentHeaders(task) })
  return answerFrom(c, services, task, reader, { isListed: true, headers, delivered: audit.delivered })
}

/** @param all reads the ids of all folders, for a body without ledgers */
async function askedLedgers(
  { ledgers }: z.output<LedgersBody>,
  all: () => Promise<string[]>,
): Promise<AskedLedger[]> {
  if (ledgers)
    return ledgers.map(({ society, since, entries = [], tables = {} }: z.output<typeof ledger>) => ({
      society,
      since,
      entries: mergedRanges(entries),
      tables: tables as AskedLedger['tables'],
    }))
  return (await all()).map((society) => ({ society, since: undefined, entries: [], tables: {} }))
}

/**
 * Writes one row of the audit for each ledger. A ledger counts as sent once the network has all of it; of the other
 * ledgers, nobody knows what has arrived.
 */
function auditLedgers(c: Context<Edge>, { audit, log }: Services) {
  const requestId = c.get('requestId')
  let waiting: EndedLedger[] = []
  const record = (isWhole: boolean, { asked, cursor, rows, sha256, refusal }: EndedLedger) => {
    const noted = c.get('audited')
    if (!noted) return
    // `bytes` are those of the whole answer.
    const { bytes: _, ...facts } = noted
    const { society, since, entries } = asked
    const selection = { since: since ?? null, entries: entries.length }
    const status = refusal ? errorCodes[refusal.code].status : 200
    const end = { at: new Date(), method: c.req.method, requestId, folderId: society, status, isWhole }
    const ofLedger = { ...facts, selection, cursor, rows, sha256 }
    audit.record(answeredRequest(ofLedger, { ...end, code: refusal?.code }))
  }
  c.env.outgoing.once('close', () => {
    for (const ledger of waiting) record(c.env.outgoing.writableFinished, ledger)
    waiting = []
  })
  return {
    ended(ledger: EndedLedger): void {
      const { refusal, fault, asked } = ledger
      if (refusal && fault !== undefined)
        log('ledger.failed', { requestId, folderId: asked.society, code: refusal.code, error: fault })
      waiting.push({ ...ledger, kept: undefined })
    },
    delivered(bytes: number): void {
      while (waiting[0] && waiting[0].upTo <= bytes) record(true, waiting.shift()!)
    },
  }
}

const answerExample = [
  { ledger: '26002', since: null, cursor: cursorExample, entries: [] },
  { refused: '26003', code: 'ERR-FOLDER-NOT-FOUND', message: 'There is no such folder' },
  { whole: 1, refusals: 1 },
]

/** `POST /mad/ledgers/changes`: many ledgers in one answer. */
export const ledgerChanges = ledgersRoute({
  operationId: 'listLedgerChanges',
  path: '/api/v1/mad/ledgers/changes',
  summary: 'What changed in many ledgers, or all of them, in one stream of rows that prove themselves',
  body: {
    schema: changesBody,
    example: {
      ledgers: [{ society: '26002', since: cursorExample, entries: [['0', '8191']] }, { society: '26003' }],
    },
  },
  what: 'ledgers',
  form: 'ledgers',
  answered: {
    description:
      'Lines in UTF-8. A line that begins with { is JSON and describes the rows after or before it; any other is a row in the ' +
      "text format of PostgreSQL's COPY. The last line has the counts of ledgers: an answer without it is broken",
    schema: z
      .string()
      .openapi({ example: answerExample.map((line) => `${JSON.stringify(line)}\n`).join('') }),
  },
})

const { sha256 } = Block.shape

const LedgerBlocks = named('LedgerBlocks', {
  society: z.string().openapi({ ...idSchema, example: '26002' }),
  cursor: z.string().openapi({
    description: 'The state of the ledger that the digests are of',
    example: cursorExample,
  }),
  rows: z.int().min(0).openapi({ description: 'Movements of the ledger, drafts included' }),
  digest: sha256.openapi({ description: 'Of the digests of the blocks, as bytes, in their order' }),
  tables: z
    .object(
      Object.fromEntries(
        wholeTables.map((name) => [name, sha256.openapi({ description: `Of all rows of ${name}` })]),
      ),
    )
    .openapi('TableDigests', {
      description: 'Of the other tables, rows as in ledgers/changes, each with its line feed',
    }),
  blocks: z.array(Block).openapi({
    description:
      'Ranges of entry ids, disjoint and ascending, with the digest of their movements as rows of ledgers/changes. ' +
      'Rows of a copy outside every block differ, too',
  }),
})

const RefusedLedger = named('RefusedLedger', {
  refused: z.string().openapi({ ...idSchema, description: 'Id of the folder', example: '26003' }),
  code: z
    .enum(Object.keys(errorCodes) as [string, ...string[]])
    .openapi('ErrorCode', { example: 'ERR-FOLDER-NOT-FOUND' }),
  message: z.string().openapi({ example: 'There is no such folder' }),
})

/** `POST /mad/ledgers/blocks`: digests of many ledgers, to compare copies with (docs/spec/ledgers.md#blocks). */
export const ledgerBlocks = ledgersRoute({
  operationId: 'listLedgerBlocks',
  path: '/api/v1/mad/ledgers/blocks',
  summary: 'Digests of many ledgers, or all of them, by ranges of entry ids, to compare copies with',
  body: { schema: blocksBody, example: { ledgers: [{ society: '26002' }, { society: '26003' }] } },
  what: 'ledger blocks',
  form: 'ndjson',
  answered: {
    description: 'One line for each ledger, in the order of the request',
    schema: z.union([LedgerBlocks, RefusedLedger]),
  },
  known: async ({ services, principal }, asked, cursor) => {
    const { database, config } = services
    const { schemaId } = principal
    const folder = wholeFolder({ schemaId, folderId: asked.society }, config.timeZone)
    const kept = await askForBlocks(database, folder, cursor)
    if (!kept?.tables) return undefined
    const { blocks, tables } = kept
    return blocksLine(asked.society, cursor, { blocks, tables }, opensEmployees(principal))
  },
})
