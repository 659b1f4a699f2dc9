import { describe, expect, test } from 'vitest'
import { forTests } from '../support/for-tests.ts'
import { request } from '../support/service.ts'
import { keyInfo, setCallerStage } from '../support/stages/caller-stage.ts'
import { until } from '../support/until.ts'

const stage = forTests(setCallerStage)

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

  test('is kept if it is valid', async () => {
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

  test('is in the answer and in its line of the log', async () => {
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
