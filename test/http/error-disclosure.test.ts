import { expect, test } from 'vitest'
import { makeSigningSecret } from '../../src/auth/secrets.ts'
import { forTests } from '../support/for-tests.ts'
import { request } from '../support/service.ts'
import { keyInfo, setCallerStage } from '../support/stages/caller-stage.ts'
import { until } from '../support/until.ts'

const stage = forTests(setCallerStage)

test('no secret appears in an error or in the log, even one that a caller puts into the URL', async () => {
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
    // Its last characters, as it was sent and as it is read.
    expect(text).not.toContain(escaped.slice(-12))
    expect(text).not.toContain(signing.slice(-10))
  }
  for (const line of stage.service.lines) expect(JSON.parse(line).event).toEqual(expect.any(String))
})

test('an internal error answers 500 without details, and logs them', async () => {
  const broken = await setCallerStage()
  try {
    await broken.staff.client.query('drop function grandlivre.admit cascade')
    const { status, body } = await request(broken.service.url + keyInfo, broken.signed)
    expect([status, body.error.code]).toEqual([500, 'ERR-INTERNAL'])
    expect(JSON.stringify(body)).not.toMatch(/caller|function|grandlivre|\.ts/)
    const line = JSON.parse(broken.service.lines.find((text) => text.includes('request.failed'))!)
    expect(line).toMatchObject({ level: 'error', requestId: body.error.details.requestId })
    expect(line.error.message).toContain('grandlivre.admit')
  } finally {
    await broken.close()
  }
})
