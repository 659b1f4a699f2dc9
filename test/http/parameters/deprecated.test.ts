/** Headers and the document of the API announce what will be removed (docs/versions.md#notice). */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { z } from '@hono/zod-openapi'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApp } from '../../../src/http/app.ts'
import { createListener } from '../../../src/http/listener.ts'
import { openRoute, type Route } from '../../../src/http/route.ts'
import { openApiDocument } from '../../../src/http/schemas/openapi.ts'
import type { Services } from '../../../src/http/services.ts'
import { createLog } from '../../../src/log.ts'
import { noTelemetry } from '../../../src/telemetry/telemetry.ts'
import { defaultTiming } from '../../../src/timing.ts'
import { request } from '../../support/service.ts'

const route = (path: Route['path'], deprecated?: Route['deprecated']): Route =>
  openRoute({
    method: 'get',
    path,
    operationId: 'getSomething',
    summary: 'A route of this test',
    query: z
      .strictObject({ old: z.string().optional(), kept: z.string().optional() })
      .refine(({ old }) => old !== 'no'),
    answers: { 200: { description: 'Something' } },
    ...(deprecated ? { deprecated } : {}),
    answer: ({ c }) => c.json([]),
  })

const table = [
  route('/api/v1/kept'),
  route('/api/v1/old/{id}', { since: '2027-03-01', sunset: '2027-09-30' }),
  route('/api/v1/part', { since: '2027-03-01', parameter: 'old' }),
]

const log = createLog('silent')
// Open routes use no other services.
const app = createApp(
  { log, telemetry: noTelemetry, audit: { record: () => {} } } as unknown as Services,
  table,
)
const server = createListener(app.fetch, { log, telemetry: noTelemetry }, defaultTiming.listener)
let url: string
beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`
})
afterAll(() => void server.close())

/** The status of an answer, and its headers that announce an end. */
async function announced(path: string) {
  const { status, headers } = await request(url + path)
  return [status, ...['deprecation', 'sunset', 'link'].map((name) => headers.get(name))]
}

const links = [
  '</docs/versions.html>; rel="deprecation"; type="text/html"',
  '</docs/versions.html>; rel="sunset"; type="text/html"',
]

test('answers of a deprecated route say since when it is deprecated and when it ends, in errors too', async () => {
  const headers = ['@1803859200', 'Thu, 30 Sep 2027 00:00:00 GMT', links.join(', ')]
  expect(await announced('/old/7')).toEqual([200, ...headers])
  expect(await announced('/old/7?unknown=1')).toEqual([400, ...headers])
  expect(await announced('/kept?old=1')).toEqual([200, null, null, null])
})

test('a request with a deprecated parameter gets the header Deprecation', async () => {
  expect(await announced('/part?old=1&kept=1')).toEqual([200, '@1803859200', null, links[0]])
  expect(await announced('/part?kept=1')).toEqual([200, null, null, null])
  expect(await announced('/part?old=no')).toEqual([400, '@1803859200', null, links[0]])
})

test('the document marks deprecated routes and parameters, and says since when', () => {
  const { paths } = openApiDocument(table)
  const [kept, old, part] = table.map(({ path }) => paths![path]!.get!)
  expect([kept, old, part].map((operation) => [operation?.deprecated, operation?.description])).toEqual([
    [undefined, ''],
    [true, 'Deprecated since 2027-03-01, until 2027-09-30.'],
    [undefined, 'Deprecated (old) since 2027-03-01.'],
  ])
  expect(part!.parameters).toEqual([
    expect.objectContaining({ name: 'old', deprecated: true }),
    expect.not.objectContaining({ deprecated: true }),
  ])
})

test('a notice of less than six months cannot be declared', () => {
  const short = route('/api/v1/short', { since: '2027-03-01', sunset: '2027-08-31' })
  expect(() => createApp({ log } as Services, [short])).toThrow('/api/v1/short')
})
