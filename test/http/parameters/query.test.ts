import { describe, expect, test } from 'vitest'
import { forTests } from '../../support/for-tests.ts'
import { request } from '../../support/service.ts'
import { keyInfo, setCallerStage } from '../../support/stages/caller-stage.ts'

const stage = forTests(setCallerStage)

describe('a query', () => {
  const issues = async (query: string) => {
    const { status, body } = await request(`${stage.service.url}${keyInfo}?${query}`, stage.signed)
    expect([status, body.error.code]).toEqual([400, 'ERR-VALIDATION'])
    return body.error.details.issues.map((issue: { parameter: string }) => issue.parameter).sort()
  }

  test('gets all its errors at once', async () => {
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

  test('may not contain a parameter that the route does not know, whatever its name', async () => {
    expect(await issues('modes=extended')).toEqual(['modes'])
    expect(await issues('__proto__=1&constructor=2&toString=3')).toEqual([
      '__proto__',
      'constructor',
      'toString',
    ])
  })

  test('must be percent-encoded UTF-8', async () => {
    for (const query of ['mode=%', 'mode=%f', 'mode=%zz', 'mode=%c3%28', 'mode=%ff'])
      expect(await issues(query)).toContain('mode')
  })

  test('of a mad route must name a supported version', async () => {
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

  test('never makes the service fail, however odd', async () => {
    const values = [
      '',
      '0',
      '-1',
      '9999999999999999999',
      '9999999999999999',
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
        const url = `${stage.service.url}/api/v1/mad/movements?version=1.0.0&idExercice=1&${name}=${value}`
        const { status, body } = await request(url, stage.signed)
        expect([400, 403, 404], `${name}=${value}`).toContain(status)
        expect(body.error.code).toMatch(/^ERR-/)
      }
  })
})
