import { describe, expect, test } from 'vitest'
import { forTests } from '../support/for-tests.ts'
import { request } from '../support/service.ts'
import { keyInfo, setCallerStage } from '../support/stages/caller-stage.ts'

const stage = forTests(setCallerStage)

describe('an address', () => {
  test('where nothing is answers 404, without a caller', async () => {
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

  test('with another method answers 405 and says which it has', async () => {
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
