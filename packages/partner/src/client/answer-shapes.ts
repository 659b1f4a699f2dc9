/**
 * The shapes that answers must have. Each answer is checked where it is read: so the error names the route and the
 * place, and does not come from a later step. Members and routes that this package does not use are not checked.
 */
import { type WholeTableName, wholeTables } from '../../../contract/src/ledger-tables.ts'
import { clientError } from './errors.ts'
import { type Answer, answerFacts } from './http/answer.ts'

/** A kind of value, a list whose items have one shape, a shape or null, or an object with the shapes of its members. */
type Shape =
  | keyof typeof kinds
  | readonly [Shape]
  | readonly [Shape, null]
  | { readonly [member: string]: Shape }

/** The last moment that a Date can hold, in milliseconds. Counts of rows, bytes and events stay far below it. */
const numberMax = 8.64e15

const kinds = {
  // No database can store a NUL, or one half of a surrogate pair.
  text: (value: unknown) => typeof value === 'string' && /^[^\0\p{Surrogate}]*$/u.test(value),
  boolean: (value: unknown) => typeof value === 'boolean',
  number: (value: unknown) => Number.isSafeInteger(value) && Math.abs(value as number) <= numberMax,
  id: (value: unknown) => /^\d{1,16}$/.test(typeof value === 'number' ? String(value) : textOf(value)),
  'SHA-256': (value: unknown) => /^[0-9a-f]{64}$/.test(textOf(value)),
  address: (value: unknown) => URL.canParse(textOf(value)),
  cursor: (value: unknown) => /^[A-Za-z0-9._-]{1,64}$/.test(textOf(value)),
  sum: (value: unknown) => /^-?\d{1,30}\.\d\d$/.test(textOf(value)),
} as const

const textOf = (value: unknown) => (typeof value === 'string' ? value : '')

const subscription = {
  id: 'id',
  postUrl: ['address', null],
  onEvents: ['text'],
  accountingFolderId: ['id'],
} as const
const attempt = {
  at: 'number',
  status: ['number', null],
  milliseconds: 'number',
  answer: ['text', null],
  error: ['text', null],
} as const
const delivery = {
  id: 'id',
  state: 'text',
  nextAttemptAt: ['number', null],
  attempts: [attempt],
} as const
const ping = {
  ...attempt,
  receiverDate: ['number', null],
  disabled: [{ since: 'number', reason: 'text' }, null],
} as const

/** Shapes by method and path. Any id in the path is written `{id}`. */
const shapes: Readonly<Record<string, Shape>> = {
  'GET /key/info?mode=extended': {
    target: { type: 'text', societyId: 'id' },
  },
  'GET /openapi.json': { components: { schemas: { EventKind: { enum: ['text'] } } } },
  'GET /society': [{ id: 'id', name: 'text', reference: ['text', null] }],
  'GET /mad/exercices': [{ producerId: 'id', name: 'text', period: { start: 'text', end: 'text' } }],
  'GET /mad/ledgers': [
    {
      society: 'id',
      firm: { id: 'id', name: 'text' },
      name: 'text',
      reference: ['text', null],
      cursor: 'cursor',
      employees: 'boolean',
    },
  ],
  'GET /mad/movements/blocks': [{ from: 'id', to: 'id', rows: 'number', sha256: 'SHA-256' }],
  'GET /mad/all': { id: 'text', status: 'text' },
  'GET /mad/all/status': { id: 'text', status: 'text' },
  'GET /webhook': [subscription],
  'GET /webhook/{id}': subscription,
  'POST /webhook': { ...subscription, signingSecret: 'text' },
  'POST /webhook/{id}/ping': ping,
  'GET /webhook/{id}/deliveries': [delivery],
  'GET /webhook/{id}/events': [{ sequence: 'id', event: { data: {} } }],
}

export const changesHead: Shape = { cursor: 'text', entries: [{ 0: 'id', 1: 'id' }] }
const tableDigests = Object.fromEntries(wholeTables.map((name) => [name, 'SHA-256'])) as Record<
  WholeTableName,
  'SHA-256'
>
const refusedLedger = { refused: 'id', code: 'text', message: 'text' } as const
/** The kinds of lines in a stream of many ledgers. The first of these names that a line has as a member is its kind. */
export const ledgerLines = {
  ledger: { ledger: 'id', since: ['cursor', null], cursor: 'cursor', entries: [{ 0: 'id', 1: 'id' }] },
  table: { table: 'text', columns: ['text'] },
  end: { end: 'id', rows: 'number', debit: 'sum', credit: 'sum', tables: tableDigests },
  refused: refusedLedger,
  whole: { whole: 'number', refusals: 'number' },
  rows: { rows: 'number', sha256: 'SHA-256' },
} as const satisfies Record<string, Shape>
/** The kinds of lines in an answer with digests of ledgers. */
export const blocksLines = {
  refused: refusedLedger,
  society: {
    society: 'id',
    cursor: 'cursor',
    rows: 'number',
    digest: 'SHA-256',
    tables: tableDigests,
    blocks: [{ from: 'id', to: 'id', rows: 'number', sha256: 'SHA-256' }],
  },
} as const satisfies Record<string, Shape>

export const doneExport: Shape = {
  url: 'address',
  size: 'number',
  fileSha256: 'SHA-256',
  contentSize: 'number',
  sha256: 'SHA-256',
  rows: 'number',
  totals: { debit: 'text', credit: 'text' },
}

/** @throws {GrandlivreError} UNEXPECTED-ANSWER, which names the route and the place that does not fit */
export function requireShape(
  value: unknown,
  {
    method = 'GET',
    path,
    query,
  }: { method?: string; path: string; query?: Readonly<Record<string, unknown>> },
  answer: Answer,
): void {
  const route = `${path.replaceAll(/\/\d+(?=\/|$)/g, '/{id}')}${query?.['mode'] === undefined ? '' : `?mode=${query['mode']}`}`
  const shape = shapes[`${method} ${route}`]
  const wrong = shape === undefined ? undefined : misfitOf(value, shape, 'answer')
  if (wrong === undefined) return
  const message = `${method} ${path} was not answered as the service does: ${wrong}`
  throw clientError('UNEXPECTED-ANSWER', message, answerFacts(answer))
}

/** @returns the first place that does not fit, such as `answer[3].period is no object`; undefined if everything fits */
export function misfitOf(value: unknown, shape: Shape, place: string): string | undefined {
  if (typeof shape === 'string') return kinds[shape](value) ? undefined : `${place} is no ${shape}`
  if (Array.isArray(shape)) {
    if (shape.length === 2) return value === null ? undefined : misfitOf(value, shape[0], place)
    if (!Array.isArray(value)) return `${place} is no list`
    for (const [at, each] of value.entries()) {
      const wrong = misfitOf(each, shape[0], `${place}[${at}]`)
      if (wrong !== undefined) return wrong
    }
    return undefined
  }
  if (typeof value !== 'object' || value === null) return `${place} is no object`
  for (const [name, member] of Object.entries(shape as Record<string, Shape>)) {
    const wrong = misfitOf((value as Record<string, unknown>)[name], member, `${place}.${name}`)
    if (wrong !== undefined) return wrong
  }
  return undefined
}
