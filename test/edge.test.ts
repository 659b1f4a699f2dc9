import { once } from 'node:events'
import { request as rawRequest } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createListener } from '../src/http/listener.ts'
import { createLog } from '../src/log.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { startProxy } from './support/proxy.ts'
import { type Answer, request, startTestService, type TestService, until } from './support/service.ts'
import { createTenants, credentials, folders, type IssuedToken, type Staff } from './support/tenants.ts'

let database: TestDatabase
let staff: Staff
let service: TestService
let secret: string
let company: IssuedToken
let signed: Record<string, string>

beforeAll(async () => {
  database = await createTestDatabase()
  staff = await createTenants(database.ownerUrl)
  secret = await staff.thirdParty('ONE')
  company = await staff.token('ONE', 'api', folders.first)
  signed = credentials(company, secret)
  service = await startTestService(database)
})

afterAll(async () => {
  await service?.stop()
  await staff?.end()
  await database?.drop()
})

const keyInfo = '/api/v1/key/info'
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

describe('an address', () => {
  test('where nothing is answers 404, without a caller', async () => {
    for (const path of [
      '/',
      '/api/v1',
      '/api/v1/nothing',
      '/api/v1/key/info/',
      '/API/v1/key/info',
      '/%zz',
      '/a%00b',
    ]) {
      const { status, body } = await request(service.url + path)
      expect([status, body.error.code]).toEqual([404, 'ERR-NOT-FOUND'])
      expect(body.error.details).toMatchObject({ url: path, method: 'GET' })
    }
  })

  test('with another method answers 405 and says which it has', async () => {
    for (const path of [keyInfo, '/healthz', '/api/v1/mad/movements', '/api/v1/openapi.json'])
      for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
        const { status, headers, body } = await request(service.url + path, {}, method)
        expect([status, body.error.code]).toEqual([405, 'ERR-METHOD-NOT-ALLOWED'])
        expect(headers.get('allow')).toBe('GET, HEAD')
        expect(body.error.details.method).toBe(method)
      }
  })

  test('answers HEAD as GET, without a body', async () => {
    const head = await request(service.url + keyInfo, signed, 'HEAD')
    const get = await request(service.url + keyInfo, signed)
    expect(head.status).toBe(200)
    expect(head.body).toBe('')
    expect([...head.headers.keys()]).toEqual(
      expect.arrayContaining(['content-type', 'x-rate-limit-total', 'x-request-id']),
    )
    expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'))
    expect((await request(`${service.url}/nothing`, {}, 'HEAD')).status).toBe(404)
  })
})

describe('a query', () => {
  const issues = async (query: string) => {
    const { status, body } = await request(`${service.url}${keyInfo}?${query}`, signed)
    expect([status, body.error.code]).toEqual([400, 'ERR-VALIDATION'])
    return body.error.details.issues.map((issue: { parameter: string }) => issue.parameter).sort()
  }

  test('is told all that is wrong with it at once', async () => {
    expect(await issues('mode=full&foo=1&bar=2&baz=%ff')).toEqual(['bar', 'baz', 'baz', 'foo', 'mode'])
  })

  test('may not repeat what is given once', async () => {
    expect(await issues('mode=extended&mode=extended')).toEqual(['mode'])
  })

  test('may not hold a parameter the route does not know, whatever its name', async () => {
    expect(await issues('modes=extended')).toEqual(['modes'])
    expect(await issues('__proto__=1&constructor=2&toString=3')).toEqual([
      '__proto__',
      'constructor',
      'toString',
    ])
  })

  test('has to be percent-encoded UTF-8', async () => {
    for (const query of ['mode=%', 'mode=%f', 'mode=%zz', 'mode=%c3%28', 'mode=%ff'])
      expect(await issues(query)).toContain('mode')
  })

  test('of a mad route names a version that is spoken', async () => {
    const movements = async (query: string) =>
      (await request(`${service.url}/api/v1/mad/movements?idExercice=1${query}`, signed)).body.error
    for (const version of ['', '1', '1.0', 'v1.0.0', '1.0.0.0', '1.0.x']) {
      const error = await movements(`&version=${version}`)
      expect(error.code).toBe('ERR-VALIDATION')
      expect(error.details.issues).toEqual([
        { parameter: 'version', message: expect.stringContaining('1.0.0') },
      ])
    }
    for (const version of ['0.9.0', '1.0.1', '2.0.0', '10.0.0']) {
      const error = await movements(`&version=${version}`)
      expect([error.code, error.details.issues]).toEqual(['ERR-UNSUPPORTED-VERSION', undefined])
      expect(error.message).toContain('1.0.0')
    }
    expect((await movements('')).details.issues).toEqual([{ parameter: 'version', message: 'is required' }])
    expect((await movements('&version=1.0.0')).code).toBe('ERR-EXERCICE-NOT-FOUND')
  })

  test('never brings the service to fail, however odd', async () => {
    const values = [
      '',
      '0',
      '-1',
      '9999999999999999999',
      '1e3',
      'a'.repeat(5000),
      '%00',
      '%F0%9F%92%A9',
      "'",
      '"',
      '\\',
    ]
    const names = [
      'idExercice',
      'startDate',
      'endDate',
      'accountingFolderId',
      'classAccount',
      'lettering',
      'source',
      'after',
    ]
    for (const name of names)
      for (const value of [...values, '0000-01-01', '2024-02-30', '9999-12-31'].map(encodeURI)) {
        const url = `${service.url}/api/v1/mad/movements?version=1.0.0&idExercice=1&${name}=${value}`
        const { status, body } = await request(url, signed)
        expect([400, 403, 404], `${name}=${value}`).toContain(status)
        expect(body.error.code).toMatch(/^ERR-/)
      }
  })
})

describe('a request that is too large', () => {
  const refused = [413, 'ERR-PAYLOAD-TOO-LARGE']

  test('in its URL', async () => {
    const { status, headers, body } = await request(`${service.url}/healthz?${'a'.repeat(20_000)}`)
    expect([status, body.error.code]).toEqual(refused)
    expect(body.error.details.url.length).toBeLessThan(4096)
    expect(headers.get('x-request-id')).toBe(body.error.details.requestId)
  })

  test('in its headers', async () => {
    const { status, body } = await request(`${service.url}/healthz`, { 'x-long': 'a'.repeat(50_000) })
    expect([status, body.error.code]).toEqual(refused)
  })

  test('in its body', async () => {
    const response = await fetch(service.url + keyInfo, { method: 'POST', body: 'a'.repeat(70_000) })
    const { error } = (await response.json()) as { error: { code: string } }
    expect([response.status, error.code]).toEqual(refused)
  })
})

describe('what is no request of this service', () => {
  async function raw(
    text: string,
  ): Promise<{ head: string; error: { code: string; details: { requestId: string } } }> {
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.write(text)
    await once(socket, 'close')
    const [head, body] = Buffer.concat(chunks).toString().split('\r\n\r\n')
    return { head: head!, ...JSON.parse(body!) }
  }

  test.each([
    ['no HTTP at all', 'hello\r\n\r\n', 400],
    ['no host', 'GET /healthz HTTP/1.1\r\n\r\n', 400],
    ['an odd host', 'GET /healthz HTTP/1.1\r\nHost: a/b?c\r\n\r\n', 400],
    ['no path', 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n', 404],
    ['a backslash in the path', 'GET /a\\b HTTP/1.1\r\nHost: a\r\n\r\n', 404],
    ['an odd expectation', 'GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: gold\r\n\r\n', 400],
  ])('%s is answered in the same shape', async (_what, text, status) => {
    const { head, error } = await raw(text)
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(error.code).toBe(status === 400 ? 'ERR-VALIDATION' : 'ERR-NOT-FOUND')
    expect(head.toLowerCase()).toContain(`x-request-id: ${error.details.requestId}`)
  })

  test('a request that never ends is told so, and not that it is no HTTP', () => {
    const socket = new PassThrough({ encoding: 'utf8' })
    const server = createListener(() => expect.unreachable(), createLog('silent'))
    const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
    server.emit('clientError', late, socket)
    const [head, body] = socket.read().split('\r\n\r\n')
    expect(head).toMatch(/^HTTP\/1.1 400 /)
    expect(JSON.parse(body).error.details.issues).toEqual([
      { parameter: 'request', message: expect.stringContaining('within 10 seconds') },
    ])
  })
})

describe('a connection on which nothing was sent yet', () => {
  test('is not answered, however late its first request comes', async () => {
    const server = createListener(() => new Response('there'), createLog('silent'))
    // Looked at every five seconds; it is too late at once.
    server.headersTimeout = 1
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    await once(server, 'clientError')
    server.headersTimeout = 10_000
    expect(answer).toBe('')
    socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    await once(socket, 'close')
    expect([answer.split('\r\n')[0], answer.slice(-5)]).toEqual(['HTTP/1.1 200 OK', 'there'])
    await new Promise((done) => server.close(done))
  })
})

describe('the request id', () => {
  const idOf = async (id?: string) => {
    const { headers, body } = await request(
      `${service.url}/nothing`,
      id === undefined ? {} : { 'x-request-id': id },
    )
    expect(body.error.details.requestId).toBe(headers.get('x-request-id'))
    return headers.get('x-request-id')
  }

  test('is kept where it is valid', async () => {
    for (const id of [
      'a',
      'x'.repeat(128),
      '01J9ZQ',
      'Root=1-67891233-abcdef',
      '8e1c8f4e-3c7e-4c3e-8f9b-2f1f3c9a1b2d',
    ])
      expect(await idOf(id)).toBe(id)
  })

  test('is made where there is none, or an odd one', async () => {
    for (const id of [undefined, '', 'x'.repeat(129), 'a b', 'a"b', '<script>', 'a,b'])
      expect(await idOf(id)).toMatch(uuid)
  })

  test('is on every answer and in its line of the log', async () => {
    const { headers } = await request(service.url + keyInfo, { ...signed, 'x-request-id': 'traced-one' })
    expect(headers.get('x-request-id')).toBe('traced-one')
    await until(() => service.lines.some((line) => line.includes('traced-one')))
    const line = JSON.parse(service.lines.find((text) => text.includes('traced-one'))!)
    expect(line).toEqual({
      at: expect.any(String),
      level: 'info',
      event: 'request.ended',
      requestId: 'traced-one',
      method: 'GET',
      path: keyInfo,
      status: 200,
      ms: expect.any(Number),
      tokenId: company.id,
      schemaId: '100',
      folderId: '111',
    })
  })
})

test('no secret comes back in an error or gets into the log, also where a caller puts it into the URL', async () => {
  const url = `${service.url}${keyInfo}?token=${company.token}&${secret}=1`
  const { status, body } = await request(url, { ...signed, 'x-request-id': company.token })
  expect(status).toBe(400)
  await request(`${service.url}/${company.token}`)
  await until(() => service.lines.some((line) => line.includes('glv_api_***')))
  for (const text of [JSON.stringify(body), service.lines.join('')]) {
    expect(text).not.toContain(company.token)
    expect(text).not.toContain(secret)
  }
  for (const line of service.lines) expect(JSON.parse(line).event).toEqual(expect.any(String))
})

describe('the OpenAPI document', () => {
  test('lists every route of the table with its parameters', async () => {
    const { status, body } = await request(`${service.url}/api/v1/openapi.json`)
    expect(status).toBe(200)
    expect(body.openapi).toBe('3.1.0')
    const { body: opened } = await request(service.url + keyInfo, signed)
    for (const { path, method } of opened) expect(body.paths[path][method].security[0]).toBeDefined()
    expect(Object.keys(body.paths)).toEqual(
      expect.arrayContaining([
        '/healthz',
        '/readyz',
        keyInfo,
        '/api/v1/mad/movements',
        '/api/v1/openapi.json',
      ]),
    )
    const { parameters, responses } = body.paths['/api/v1/mad/movements'].get
    const names = parameters.map((parameter: { name: string }) => parameter.name)
    expect(names).toEqual(expect.arrayContaining(['version', 'idExercice', 'classAccount', 'society-id']))
    expect(new Set(names).size).toBe(names.length)
    expect(responses['200'].content['application/json'].schema).toBeDefined()
    expect(responses['default'].content['application/json'].schema).toBeDefined()
  })

  test('describes every header that is answered', async () => {
    const { body } = await request(`${service.url}/api/v1/openapi.json`)
    const { parameters, responses } = body.paths['/api/v1/mad/movements'].get
    expect(parameters.map((parameter: { name: string }) => parameter.name)).toEqual(
      expect.arrayContaining(['if-none-match', 'if-match']),
    )
    const ask = (headers: Record<string, string>, method?: string) => {
      const query = 'version=1.0.0&startDate=2026-01-01&endDate=2026-01-31'
      return request(`${service.url}/api/v1/mad/movements?${query}`, headers, method)
    }
    const whole = await ask({ ...signed, 'Accept-Encoding': 'gzip' })
    const etag = whole.headers.get('etag')!
    const answers: [Answer, number, string][] = [
      [whole, 200, '200'],
      [await ask({ ...signed, 'Accept-Encoding': 'gzip', 'If-None-Match': etag }), 304, '304'],
      [await ask({ ...signed, 'If-Match': '"another"' }), 412, 'default'],
      [await ask({}), 401, 'default'],
      [await ask(signed, 'POST'), 405, 'default'],
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

  test('refers to nothing that is not in it', async () => {
    const { body } = await request(`${service.url}/api/v1/openapi.json`)
    const references = [...JSON.stringify(body).matchAll(/"\$ref":"#\/([^"]+)"/g)].map((match) => match[1]!)
    expect(references.length).toBeGreaterThan(0)
    for (const reference of references) {
      const found = reference.split('/').reduce((place, key) => place?.[key], body)
      expect(found, reference).toBeDefined()
    }
  })
})

describe('the rate limit', () => {
  test('counts a token over all processes, and shows on every answer of it', async () => {
    const rateLimit = { requests: 5, windowMs: 3_600_000, concurrent: 10 }
    const services = await Promise.all([1, 2].map(() => startTestService(database, { rateLimit })))
    try {
      const limited = credentials(await staff.token('ONE', 'api', folders.first), secret)
      const unlimited = credentials(await staff.token('ONE', 'api', folders.first), secret)
      const paths = [keyInfo, `${keyInfo}?mode=wrong`, '/api/v1/mad/movements?version=1.0.0&idExercice=1']
      const answers = []
      for (let count = 0; count < 5; count += 1)
        answers.push(await request(services[count % 2]!.url + paths[count % 3]!, limited))
      expect(answers.map(({ status }) => status)).toEqual([200, 400, 404, 200, 400])
      expect(answers.map(({ headers }) => headers.get('x-rate-limit-remaining'))).toEqual([
        '4',
        '3',
        '2',
        '1',
        '0',
      ])
      for (const { headers } of answers) {
        expect(headers.get('x-rate-limit-total')).toBe('5')
        expect(headers.get('x-rate-limit-reset')).toBe(answers[0]!.headers.get('x-rate-limit-reset'))
      }
      for (const { url } of services) {
        const { status, headers, body } = await request(url + keyInfo, limited)
        expect([status, body.error.code]).toEqual([429, 'ERR-TOO-MANY-REQUEST'])
        expect(headers.get('x-rate-limit-remaining')).toBe('0')
        const untilReset = Number(headers.get('x-rate-limit-reset')) - Date.now()
        expect(Math.abs(Number(headers.get('retry-after')) * 1000 - untilReset)).toBeLessThan(60_000)
      }
      expect((await request(services[0]!.url + keyInfo, unlimited)).status).toBe(200)
    } finally {
      for (const { stop } of services) await stop()
    }
  })

  test('lets a token in again with the next window', async () => {
    const rateLimit = { requests: 1, windowMs: 100, concurrent: 10 }
    const limited = await startTestService(database, { rateLimit })
    try {
      const headers = credentials(await staff.token('ONE', 'api', folders.first), secret)
      const statuses = new Set<number>()
      await until(async () => {
        statuses.add((await request(limited.url + keyInfo, headers)).status)
        return statuses.size === 2 && (await request(limited.url + keyInfo, headers)).status === 200
      })
      expect([...statuses].sort()).toEqual([200, 429])
    } finally {
      await limited.stop()
    }
  })

  test('counts exactly when requests come at once', async () => {
    const rateLimit = { requests: 20, windowMs: 3_600_000, concurrent: 10 }
    const limited = await startTestService(database, { rateLimit })
    try {
      const headers = credentials(await staff.token('ONE', 'api', folders.first), secret)
      const answers = await Promise.all(
        Array.from({ length: 30 }, () => request(limited.url + keyInfo, headers)),
      )
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(20)
      expect(answers.filter(({ status }) => status === 429)).toHaveLength(10)
    } finally {
      await limited.stop()
    }
  })
})

test('the probes tell when the database goes and when it is back, and callers are told to wait', async () => {
  const proxy = await startProxy(database.ownerUrl)
  const proxied = await startTestService({ ownerUrl: proxy.url })
  try {
    const status = async (path: string) => (await request(proxied.url + path, signed)).status
    expect([await status('/healthz'), await status('/readyz'), await status(keyInfo)]).toEqual([
      200, 200, 200,
    ])
    await proxy.cut()
    expect(await status('/healthz')).toBe(200)
    for (const path of ['/readyz', keyInfo]) {
      const { status, headers, body } = await request(proxied.url + path, signed)
      expect([status, body.error.code]).toEqual([503, 'ERR-UNAVAILABLE'])
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
      expect(JSON.stringify(body)).not.toMatch(/ECONNREFUSED|postgres|127\.0\.0\.1/)
    }
    await proxy.mend()
    await until(async () => (await status('/readyz')) === 200)
    expect(await status(keyInfo)).toBe(200)
  } finally {
    await proxied.stop()
    await proxy.cut()
  }
})

test('a fault of our own is a 500 that tells nothing, and a line in the log that tells all', async () => {
  const broken = await createTestDatabase()
  const people = await createTenants(broken.ownerUrl)
  const key = await people.thirdParty('ONE')
  const token = await people.token('ONE', 'api', folders.first)
  const failing = await startTestService(broken)
  try {
    await people.client.query('drop function grandlivre.enter')
    const { status, body } = await request(failing.url + keyInfo, credentials(token, key))
    expect([status, body.error.code]).toEqual([500, 'ERR-INTERNAL'])
    expect(JSON.stringify(body)).not.toMatch(/caller|function|grandlivre|\.ts/)
    const line = JSON.parse(failing.lines.find((text) => text.includes('request.failed'))!)
    expect(line).toMatchObject({ level: 'error', requestId: body.error.details.requestId })
    expect(line.error.message).toContain('grandlivre.enter')
  } finally {
    await failing.stop()
    await people.end()
    await broken.drop()
  }
})

test('a request on a connection that is kept open is answered like the first', async () => {
  const { port } = new URL(service.url)
  const socket = connect(Number(port), '127.0.0.1')
  await once(socket, 'connect')
  for (let count = 0; count < 3; count += 1) {
    const outgoing = rawRequest({
      createConnection: () => socket,
      path: '/healthz',
      headers: { Host: 'x', Connection: 'keep-alive' },
    })
    outgoing.end()
    const [response] = await once(outgoing, 'response')
    response.resume()
    await once(response, 'end')
    expect(response.statusCode).toBe(200)
  }
  socket.destroy()
})
