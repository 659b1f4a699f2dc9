/** /docs/api/ over HTTP; reference-in-browser.slow.test.ts has what a reader sees. */
import { expect, test } from 'vitest'
import { readDemoCredentials } from '../../../src/http/reference/demo-credentials.ts'
import { forTests } from '../../support/for-tests.ts'
import { type Answer, request } from '../../support/service.ts'
import { setDemoStage } from '../../support/stages/demo-stage.ts'

const stage = forTests(() => setDemoStage(500))

const fromPage = () => ({ 'Sec-Fetch-Site': 'same-origin', Referer: `${stage.service.url}/docs/api/` })

const ask = (path: string, headers?: Record<string, string>, method?: string): Promise<Answer> =>
  request(stage.service.url + path, headers, method)

test('the page needs no credentials, and its policy allows no content from other hosts', async () => {
  const { status, headers, body } = await ask('/docs/api/')
  expect(status).toBe(200)
  expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(body).toContain('<title>Grandlivre')
  const policy = headers.get('content-security-policy')!
  expect(policy).toContain("default-src 'none'; script-src 'self';")
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).not.toMatch(/unsafe-eval|script-src[^;]*unsafe|https?:|\*/)
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(headers.get('referrer-policy')).toBe('no-referrer')
})

test('the page names only files that the service has', async () => {
  const { body } = await ask('/docs/api/')
  const named = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path!)
  expect(named.length).toBeGreaterThan(4)
  for (const path of named) expect((await ask(path)).status, path).toBe(200)
})

test('a file is compressed for clients that accept compression, and gets 304 while it is unchanged', async () => {
  const path = `${stage.service.url}/docs/api/swagger-ui.css`
  const plain = await fetch(path, { headers: { 'Accept-Encoding': 'identity' } })
  const css = Buffer.from(await plain.arrayBuffer())
  expect(plain.headers.get('content-encoding')).toBeNull()
  expect(plain.headers.get('content-length')).toBe(String(css.length))
  // undici decodes the body and keeps the headers.
  const compressed = await fetch(path, { headers: { 'Accept-Encoding': 'gzip' } })
  expect(compressed.headers.get('content-encoding')).toBe('gzip')
  expect(Number(compressed.headers.get('content-length'))).toBeLessThan(css.length / 4)
  expect(css.equals(Buffer.from(await compressed.arrayBuffer()))).toBe(true)
  const etag = compressed.headers.get('etag')!
  expect(etag).not.toBe(plain.headers.get('etag'))
  const again = await fetch(path, { headers: { 'Accept-Encoding': 'gzip', 'If-None-Match': etag } })
  expect([again.status, await again.text()]).toEqual([304, ''])
})

test.each(['/docs/api/', '/docs/api/page.js', '/docs/api/swagger-ui-bundle.js'])(
  'HEAD %s has the headers of GET and no body',
  async (path) => {
    const accept = { 'Accept-Encoding': 'gzip' }
    const get = await ask(path, accept)
    const head = await ask(path, accept, 'HEAD')
    expect([head.status, head.body]).toEqual([200, ''])
    for (const name of ['content-length', 'content-type', 'etag', 'content-encoding'])
      expect(head.headers.get(name), name).toBe(get.headers.get(name))
  },
)

test.each([
  '/docs/api/nothing.js',
  '/docs/api/constructor',
  '/docs/api/page.js/x',
  '/docs/api/..%2f..%2fpackage.json',
])('%s is an error in the usual form', async (path) => {
  const { status, body } = await ask(path)
  expect([status, body.error.code]).toEqual([404, 'ERR-NOT-FOUND'])
})

test('other methods get 405 with Allow', async () => {
  for (const path of ['/docs/api/', '/docs/api/page.js', '/docs/api/demo-credentials.json']) {
    const { status, headers, body } = await ask(path, {}, 'POST')
    expect([status, headers.get('allow'), body.error.code]).toEqual([
      405,
      'GET, HEAD',
      'ERR-METHOD-NOT-ALLOWED',
    ])
  }
})

test.each([
  ['/docs/api', '/docs/api/'],
  ['/docs/page.js', '/docs/api/page.js'],
  ['/docs/swagger-ui-bundle.js', '/docs/api/swagger-ui-bundle.js'],
  ['/docs/demo-credentials.json', '/docs/api/demo-credentials.json'],
])('%s, the address until version 0.2, redirects to %s', async (path, to) => {
  const answer = await fetch(stage.service.url + path, { redirect: 'manual' })
  expect([answer.status, answer.headers.get('location')]).toEqual([308, to])
})

test('the page gets the credentials of the demo, and no cache keeps them', async () => {
  const { status, headers, body } = await ask('/docs/api/demo-credentials.json', fromPage())
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
  const { companyToken, thirdPartySecret, exercices } = stage.credentials
  expect(body).toEqual({ companyToken, thirdPartySecret, idExercice: exercices.at(-1)!.id })
  expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
})

test.each([
  ['a page of another site', { 'Sec-Fetch-Site': 'cross-site' }],
  ['a request through a proxy', { 'X-Forwarded-For': '192.0.2.60' }],
  ['a page at the address of a proxy', { Referer: 'https://ledger.example.com/docs/api/' }],
])('%s gets neither credentials nor an error', async (_, headers) => {
  const answer = await ask('/docs/api/demo-credentials.json', { ...fromPage(), ...headers })
  expect([answer.status, answer.body, answer.headers.get('cache-control')]).toEqual([204, '', 'no-store'])
})

test("a service on the operator's own database offers no credentials, whatever its data folder holds", () => {
  const sent = {
    host: ['localhost'],
    referer: ['http://localhost/docs/api/'],
    'sec-fetch-site': ['same-origin'],
  }
  const asking = { headersDistinct: sent }
  const own = { host: '127.0.0.1', dataDir: stage.dataDir, databaseUrl: undefined, publicUrl: undefined }
  const read = (databaseUrl: string | undefined) =>
    readDemoCredentials({ ...own, databaseUrl }, { ...asking, socket: { remoteAddress: '127.0.0.1' } })
  expect(read(undefined)).toBeDefined()
  expect(read('postgres://books@db.example.com/books')).toBeUndefined()
})
