/** What every request gets, whatever its route: addresses, methods, queries, request ids and errors. */
import { describe, expect, test } from 'vitest'
import { makeSigningSecret } from '../../src/auth/secrets.ts'
import { forTests } from '../support/for-tests.ts'
import { request } from '../support/service.ts'
import { keyInfo, setCallerStage } from '../support/stages/caller-stage.ts'
import { until } from '../support/until.ts'

const stage = forTests(setCallerStage)

describe('an address', () => {
  test('without a route answers 404, even without a caller', async () => {
    for (const path of [
      '/api/v1',
      '/api/v1/nothing',
      '/api/v1/key/info/',
      '/API/v1/key/info',
      '/%zz',
      '/a%00b',
    ]) {
      const { status, body } = await request(stage.service.url + path)
      expect([status, body.error.code]).toEqual([404, 'ERR-NOT-FOUND'])
      expect(body.error.details).toMatchObject({ url: path, method: 'GET' })
    }
  })

  test('with a wrong method answers 405 and lists the allowed ones', async () => {
    for (const path of [keyInfo, '/healthz', '/api/v1/mad/movements', '/api/v1/openapi.json'])
      for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
        const { status, headers, body } = await request(stage.service.url + path, {}, method)
        expect([status, body.error.code]).toEqual([405, 'ERR-METHOD-NOT-ALLOWED'])
        expect(headers.get('allow')).toBe('GET, HEAD')
        expect(body.error.details.method).toBe(method)
      }
  })

  test('answers HEAD as GET, without a body', async () => {
    const head = await request(stage.service.url + keyInfo, stage.signed, 'HEAD')
    const get = await request(stage.service.url + keyInfo, stage.signed)
    expect(head.status).toBe(200)
    expect(head.body).toBe('')
    expect([...head.headers.keys()]).toEqual(
      expect.arrayContaining(['content-type', 'x-rate-limit-total', 'x-request-id']),
    )
    expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'))
    expect((await request(`${stage.service.url}/nothing`, {}, 'HEAD')).status).toBe(404)
  })
})

describe('a query', () => {
  const issues = async (query: string) => {
    const { status, body } = await request(`${stage.service.url}${keyInfo}?${query}`, stage.signed)
    expect([status, body.error.code]).toEqual([400, 'ERR-VALIDATION'])
    return body.error.details.issues.map((issue: { parameter: string }) => issue.parameter).sort()
  }

  test('gets all its errors in one answer', async () => {
    expect(await issues('mode=full&foo=1&bar=2&baz=%ff')).toEqual(['bar', 'baz', 'baz', 'foo', 'mode'])
  })

  test('may leave a parameter without a value', async () => {
    const plain = await request(stage.service.url + keyInfo, stage.signed)
    const empty = await request(`${stage.service.url}${keyInfo}?mode=`, stage.signed)
    expect([empty.status, empty.body]).toEqual([200, plain.body])
    expect(await issues('modes=')).toEqual(['modes'])
  })

  test('may not repeat a parameter that takes one value', async () => {
    expect(await issues('mode=extended&mode=extended')).toEqual(['mode'])
  })

  test('may not contain a parameter that the route does not know, even with an odd name', async () => {
    expect(await issues('modes=extended')).toEqual(['modes'])
    expect(await issues('__proto__=1&constructor=2&toString=3')).toEqual([
      '__proto__',
      'constructor',
      'toString',
    ])
  })

  test('must be UTF-8, percent-encoded', async () => {
    for (const query of ['mode=%', 'mode=%f', 'mode=%zz', 'mode=%c3%28', 'mode=%ff'])
      expect(await issues(query)).toContain('mode')
  })

  test('of a route below /mad must name a supported version', async () => {
    const movements = async (query: string) =>
      (await request(`${stage.service.url}/api/v1/mad/movements?idExercice=1${query}`, stage.signed)).body
        .error
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

  test('never causes an internal error, however odd', async () => {
    const numbers = ['', '0', '-1', '9'.repeat(19), '9'.repeat(16), '1e3', '0000-01-01', '2024-02-30']
    const values = [...numbers, 'a'.repeat(5000), '%00', '%F0%9F%92%A9', "'", '"', '\\']
    for (const name of ['idExercice', 'startDate', 'classAccount', 'lettering', 'after', 'since', 'entries'])
      for (const value of values.map(encodeURI)) {
        const url = `${stage.service.url}/api/v1/mad/movements?version=1.0.0&idExercice=1&${name}=${value}`
        const { status, body } = await request(url, stage.signed)
        expect([400, 403, 404], `${name}=${value}`).toContain(status)
        expect(body.error.code).toMatch(/^ERR-/)
      }
  })
})

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

describe('the request id', () => {
  const idOf = async (id?: string) => {
    const { headers, body } = await request(
      `${stage.service.url}/nothing`,
      id === undefined ? {} : { 'x-request-id': id },
    )
    expect(body.error.details.requestId).toBe(headers.get('x-request-id'))
    return headers.get('x-request-id')
  }

  test('is kept from the request if it is valid', async () => {
    for (const id of [
      'a',
      'x'.repeat(128),
      '01J9ZQ',
      'Root=1-67891233-abcdef',
      '8e1c8f4e-3c7e-4c3e-8f9b-2f1f3c9a1b2d',
    ])
      expect(await idOf(id)).toBe(id)
  })

  test('is generated if it is missing or invalid', async () => {
    for (const id of [undefined, '', 'x'.repeat(129), 'a b', 'a"b', '<script>', 'a,b'])
      expect(await idOf(id)).toMatch(uuid)
  })

  test('is in the answer and in its log line', async () => {
    const { headers } = await request(stage.service.url + keyInfo, {
      ...stage.signed,
      'x-request-id': 'traced-one',
    })
    expect(headers.get('x-request-id')).toBe('traced-one')
    await until(() => stage.service.lines.some((line) => line.includes('traced-one')))
    const line = JSON.parse(stage.service.lines.find((text) => text.includes('traced-one'))!)
    expect(line).toEqual({
      at: expect.any(String),
      level: 'info',
      event: 'request.ended',
      requestId: 'traced-one',
      method: 'GET',
      path: keyInfo,
      status: 200,
      ms: expect.any(Number),
      tokenId: stage.company.id,
      schemaId: '100',
      folderId: '111',
    })
  })
})

test('no secret appears in an error or in the log, even if a caller puts one into the URL', async () => {
  const signing = makeSigningSecret()
  const escaped = encodeURIComponent(signing)
  const url = `${stage.service.url}${keyInfo}?token=${stage.company.token}&${stage.secret}=1&${escaped}=1`
  const { status, body } = await request(url, { ...stage.signed, 'x-request-id': stage.company.token })
  expect(status).toBe(400)
  await request(`${stage.service.url}/${stage.company.token}/${escaped}`)
  await until(() => stage.service.lines.some((line) => line.includes('glv_api_***')))
  for (const text of [JSON.stringify(body), stage.service.lines.join('')]) {
    expect(text).not.toContain(stage.company.token)
    expect(text).not.toContain(stage.secret)
    // The end of the signing secret, escaped as it was sent, and as it is read.
    expect(text).not.toContain(escaped.slice(-12))
    expect(text).not.toContain(signing.slice(-10))
  }
  for (const line of stage.service.lines) expect(JSON.parse(line).event).toEqual(expect.any(String))
})

test('an internal error is answered with 500 without details, which are logged', async () => {
  // This test comes last, because no caller is admitted after it.
  await stage.staff.client.query('drop function grandlivre.admit cascade')
  const { status, body } = await request(stage.service.url + keyInfo, stage.signed)
  expect([status, body.error.code]).toEqual([500, 'ERR-INTERNAL'])
  expect(JSON.stringify(body)).not.toMatch(/caller|function|grandlivre|\.ts/)
  const line = JSON.parse(stage.service.lines.find((text) => text.includes('request.failed'))!)
  expect(line).toMatchObject({ level: 'error', requestId: body.error.details.requestId })
  expect(line.error.message).toContain('grandlivre.admit')
})
