/** What the service answers fits the schemas of its document. */
import { beforeAll, expect, test } from 'vitest'
import { schemaCheck, step } from '../../support/document/open-api.ts'
import { forTests } from '../../support/for-tests.ts'
import { request } from '../../support/service.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'

const stage = forTests(() =>
  setExportStage({ rateLimit: { requests: 1000, windowMs: 10_000, concurrent: 10 } }),
)
let wrong: ReturnType<typeof schemaCheck>
let paths: Record<string, { get?: { parameters?: { name: string }[] } }>

beforeAll(async () => {
  const { body: document } = await request(`${stage.service.url}/api/v1/openapi.json`)
  wrong = schemaCheck(document)
  paths = document.paths
})

const schemaOf = (path: string, status: number | string, mediaType = 'application/json') =>
  `/paths${step(path)}/get/responses/${status}/content${step(mediaType)}/schema`

/** The routes that need nothing but a period, with their addresses. */
function askable(): [path: string, address: string][] {
  const period = { version: '1.0.0', startDate: '2025-07-01', endDate: '2026-06-30' }
  const named = /[{]|\/all|\/entry$|openapi/
  return Object.entries(paths).flatMap(([path, { get }]) => {
    if (!get || named.test(path)) return []
    const taken = new Set(get.parameters?.map(({ name }) => name))
    const given = Object.entries(period).filter(([name]) => taken.has(name))
    return [[path, `${path}?${new URLSearchParams(given)}`]]
  })
}

test('of each collection, as an array and line by line, and of a token in both forms', async () => {
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
  // Of these the folder has none.
  expect(empty).toEqual(['/api/v1/mad/vats', '/api/v1/mad/banks', '/api/v1/webhook'])
})

test('of an error', async () => {
  const path = '/api/v1/mad/movements'
  const { status, body } = await request(`${stage.service.url}${path}?clasAccount=411`, stage.company)
  expect([status, wrong(schemaOf(path, '4XX'), body)]).toEqual([400, undefined])
  expect(wrong(schemaOf(path, '4XX'), { error: 'no object' })).toContain('must be object')
})
