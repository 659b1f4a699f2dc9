/** The routes and answers of the service agree with its document. */
import { beforeAll, expect, test } from 'vitest'
import { createApp, routes } from '../../../src/http/app.ts'
import { openApiDocument } from '../../../src/http/schemas/openapi.ts'
import type { Services } from '../../../src/http/services.ts'
import { createLog } from '../../../src/log.ts'
import { schemaCheck, step } from '../../support/document/open-api.ts'
import { forTests } from '../../support/for-tests.ts'
import { type Answer, request } from '../../support/service.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'

const stage = forTests(() =>
  setExportStage({ rateLimit: { requests: 1000, windowMs: 10_000, concurrent: 10 } }),
)
let wrong: ReturnType<typeof schemaCheck>
// biome-ignore lint/suspicious/noExplicitAny: a JSON document
let document: any

beforeAll(async () => {
  document = (await request(`${stage.service.url}/api/v1/openapi.json`)).body
  wrong = schemaCheck(document)
})

const schemaOf = (path: string, status: number | string, mediaType = 'application/json') =>
  `/paths${step(path)}/get/responses/${status}/content${step(mediaType)}/schema`

/** The routes that need at most a version and a period, with their addresses. */
function askable(): [path: string, address: string][] {
  const period = { version: '1.0.0', startDate: '2025-07-01', endDate: '2026-06-30' }
  const named = /[{]|\/all|\/entry$|openapi/
  return Object.entries<{ get?: { parameters?: { name: string }[] } }>(document.paths).flatMap(
    ([path, { get }]) => {
      if (!get || named.test(path)) return []
      const taken = new Set(get.parameters?.map(({ name }) => name))
      const given = Object.entries(period).filter(([name]) => taken.has(name))
      return [[path, `${path}?${new URLSearchParams(given)}`]]
    },
  )
}

test('answers fit their schemas: each collection, as an array and line by line, with both kinds of token', async () => {
  const empty: string[] = []
  for (const [path, address] of [
    ...askable(),
    ['/api/v1/key/info', '/api/v1/key/info?mode=extended'],
  ] as const) {
    const { status, body } = await request(stage.service.url + address, stage.company)
    expect([address, status, wrong(schemaOf(path, 200), body)]).toEqual([address, 200, undefined])
    if (Array.isArray(body) && body.length === 0) empty.push(path)
    const lines = schemaOf(path, 200, 'application/x-ndjson')
    if (Array.isArray(body) && path.includes('/mad/'))
      for (const line of body) expect([address, wrong(lines, line)]).toEqual([address, undefined])
  }
  expect(askable().length).toBeGreaterThan(15)
  // The folder has no items of these routes.
  expect(empty).toEqual(['/api/v1/mad/vats', '/api/v1/mad/banks', '/api/v1/webhook'])
})

test('an error fits its schema', async () => {
  const path = '/api/v1/mad/movements'
  const { status, body } = await request(`${stage.service.url}${path}?clasAccount=411`, stage.company)
  expect([status, wrong(schemaOf(path, '4XX'), body)]).toEqual([400, undefined])
  expect(wrong(schemaOf(path, '4XX'), { error: 'no object' })).toContain('must be object')
})

test('the document lists every route of the app except the documentation and /files, whose addresses are signed', async () => {
  expect(document.openapi).toBe('3.1.0')
  expect(document, 'what document.unit.test.ts reads').toEqual(
    JSON.parse(JSON.stringify(openApiDocument(routes))),
  )
  const listed = Object.entries<object>(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path}`),
  )
  // No request reaches this app: the test reads its routes.
  const app = createApp({ log: createLog('silent') } as Services)
  const served = app.routes
    .filter(({ method }) => method !== 'ALL')
    .map(({ method, path }) => `${method.toLowerCase()} ${path.replaceAll(/:(\w+)/g, '{$1}')}`)
  const ofApi = served.filter((route) => !/^get \/(?:docs(?:\/.*)?|llms\.txt|files\/\*|)$/.test(route))
  expect(new Set(ofApi)).toEqual(new Set(listed))
  expect(listed.length).toBeGreaterThan(20)
  const { body: opened } = await request(`${stage.service.url}/api/v1/key/info`, stage.company)
  for (const { path, method } of opened) expect(document.paths[path][method].security[0]).toBeDefined()
})

test('the document describes every header of the answers of movements', async () => {
  const { parameters, responses } = document.paths['/api/v1/mad/movements'].get
  expect(parameters.map((parameter: { name: string }) => parameter.name)).toEqual(
    expect.arrayContaining(['if-none-match', 'if-match', 'want-content-digest']),
  )
  const ask = (headers: Record<string, string>, method?: string) => {
    const query = 'version=1.0.0&startDate=2026-01-01&endDate=2026-01-31'
    return request(`${stage.service.url}/api/v1/mad/movements?${query}`, headers, method)
  }
  const whole = await ask({ ...stage.company, 'Accept-Encoding': 'gzip' })
  const etag = whole.headers.get('etag')!
  const answers: [Answer, number, string][] = [
    [whole, 200, '200'],
    [await ask({ ...stage.company, 'Accept-Encoding': 'gzip', 'If-None-Match': etag }), 304, '304'],
    [await ask({ ...stage.company, 'If-Match': '"another"' }), 412, '4XX'],
    [await ask({}), 401, '4XX'],
    [await ask(stage.company, 'POST'), 405, '4XX'],
  ]
  const ofHttp = ['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding']
  for (const [{ status, headers }, expected, described] of answers) {
    expect(status).toBe(expected)
    const named = Object.keys(responses[described].headers).map((name) => name.toLowerCase())
    expect(named).toEqual(
      expect.arrayContaining([...headers.keys()].filter((name) => !ofHttp.includes(name))),
    )
  }
})
