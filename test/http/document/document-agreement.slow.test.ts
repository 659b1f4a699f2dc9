/** The service accepts exactly the values that its OpenAPI document allows. */
import { beforeAll, expect, test } from 'vitest'
import { schemaCheck, step } from '../../support/document/open-api.ts'
import { type Answer, request } from '../../support/service.ts'
import { postUrl, setWebhookRoutes } from '../../support/stages/webhook-routes.ts'

interface Schema {
  type?: string | string[]
  enum?: unknown[]
}

interface Parameter {
  name: string
  in: string
  schema: Schema
  allowEmptyValue?: boolean
}

const routes = setWebhookRoutes()
// biome-ignore lint/suspicious/noExplicitAny: a JSON document
let document: any
let wrong: ReturnType<typeof schemaCheck>

beforeAll(async () => {
  document = (await request(`${routes.service.url}/api/v1/openapi.json`)).body
  wrong = schemaCheck(document)
})

const texts = [
  ...['', '0', '007', '1'.repeat(16), '1'.repeat(17), '-1', '1.5', '1e3', ' 1', '١'],
  ...['6', '6'.repeat(18), '60%', '%', '6%0', 'é', 'x', 'a'.repeat(17), '1-2'],
  ...['2026-01-31', '2026-02-30', '2026-1-1', '0000-01-01', '9999-12-31', '2026-01-31T00:00:00Z'],
  ...['gzip', 'GZip', 'zStd', 'br', 'utf-8', 'UTF-8', 'utf8'],
  ...['JSON', 'jSoN', 'tra', 'XML', 'none', 'None', 'FEC', 'fec', 'platform', 'extended', '1.0.0', '1.0'],
]

function refuses({ status, body }: Answer, name: string): boolean {
  if (body.error?.code === 'ERR-UNSUPPORTED-VERSION') return name === 'version'
  const issues: { parameter: string }[] = status === 400 ? body.error.details.issues : []
  return issues.some(({ parameter }) => parameter.split('.')[0] === name)
}

/** Adds the parameters that some routes require. A route that does not know one of them reports it by that name. */
function queryWith(name: string, value: string): URLSearchParams {
  const query = { version: '1.0.0', format: 'TRA', exportId: 'x', idExercice: '1' }
  if (name.endsWith('Date'))
    return new URLSearchParams({ ...query, startDate: value, endDate: value, idExercice: '' })
  if (name === 'dateFilter' || (name === 'idExercice' && value === ''))
    return new URLSearchParams({ startDate: '2026-01-01', endDate: '2026-01-31', [name]: value })
  if (name === 'encoding' || name === 'columns')
    return new URLSearchParams({ ...query, format: 'FEC', [name]: value })
  // `wait` needs a cursor. This cursor is refused, but as `since`.
  if (name === 'wait') return new URLSearchParams({ ...query, since: 'x', wait: value })
  return new URLSearchParams({ ...query, [name]: value })
}

/** The value that a text gives a parameter. Words are read in any letter case; spaces around values of a list are trimmed. */
function meantBy({ type, enum: words }: Schema, text: string): unknown {
  if (words) return words.find((word) => String(word).toLowerCase() === text.toLowerCase()) ?? text
  if (type === 'array') return [text.trim()]
  return type === 'integer' && /^\d+$/.test(text) ? Number(text) : text
}

test('the service accepts exactly those query parameters that fit the document', async () => {
  const paths = Object.entries<{ get?: { parameters?: Parameter[] } }>(document.paths)
  const parameters = paths.flatMap(([path, { get }]) =>
    (get?.parameters ?? [])
      .map((each, at) => ({ path, pointer: `/paths${step(path)}/get/parameters/${at}/schema`, ...each }))
      .filter((parameter) => parameter.in === 'query'),
  )
  expect(parameters.length).toBeGreaterThan(30)
  for (const { path, pointer, name, schema, allowEmptyValue = false } of parameters) {
    const outcomes = new Set<boolean>()
    const check = async (text: string) => {
      const answer = await request(`${routes.service.url}${path}?${queryWith(name, text)}`, routes.company)
      const allowed = (allowEmptyValue && text === '') || wrong(pointer, meantBy(schema, text)) === undefined
      expect([path, name, text, refuses(answer, name)]).toEqual([path, name, text, !allowed])
      outcomes.add(allowed)
    }
    // Four requests at once are fewer than the request slots of a route and folder.
    for (let at = 0; at < texts.length; at += 4) await Promise.all(texts.slice(at, at + 4).map(check))
    // `draft` accepts any text.
    expect([path, name, outcomes.size]).toEqual([path, name, name === 'draft' ? 1 : 2])
  }
})

test('the service accepts exactly those fields of a subscription that fit the document', async () => {
  const { properties } = document.components.schemas.SubscriptionFields
  const ids = [...texts, 0, 111, -1, 1.5, 2 ** 53 - 1, 2 ** 53, true, null]
  const values: Record<string, unknown[]> = {
    postUrl: [
      ...texts,
      ...[
        'https://hooks.test',
        'HTTPS://hooks.test/?a=@',
        'http://hooks.test/',
        'ftp://hooks.test/',
        'hooks.test',
      ],
      ...[
        'https:///x',
        'https://a@hooks.test/',
        'https://@hooks.test/',
        'https://hooks.test/a b',
        'https:hooks.test',
      ],
      ...[2048, 2049].map((length) => 'https://hooks.test/'.padEnd(length, 'x')),
      7,
      null,
    ],
    onEvents: [
      'document',
      [],
      ['document', 'document'],
      ...texts.map((text) => [text]),
      [7],
      ['document', 'x'],
    ],
    accountingFolderId: ['111', [], ...ids.map((id) => [id]), ['111', '']],
  }
  expect(Object.keys(properties)).toEqual(Object.keys(values))
  for (const [name, candidates] of Object.entries(values))
    for (const value of candidates) {
      const answer = await routes.post(routes.firm, { postUrl, onEvents: ['document'], [name]: value })
      const isWrong = wrong(`/components/schemas/SubscriptionFields/properties/${name}`, value) !== undefined
      expect([name, value, refuses(answer, name)]).toEqual([name, value, isWrong])
    }
})
