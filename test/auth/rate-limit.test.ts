import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { forTests } from '../support/for-tests.ts'
import { credentials, folders } from '../support/ledgers/tenants.ts'
import { startProcess } from '../support/process.ts'
import { request, startTestService } from '../support/service.ts'
import { keyInfo, setCallerStage } from '../support/stages/caller-stage.ts'
import { until } from '../support/until.ts'

const stage = forTests(setCallerStage)

describe('the rate limit', () => {
  test('counts a token across processes, and is in all its responses', async ({ onTestFinished }) => {
    const rateLimit = { requests: 5, windowMs: 3_600_000, concurrent: 10 }
    const dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-rate-limit-'))
    onTestFinished(() => rm(dataDir, { recursive: true }))
    const own = await startTestService(stage.database, { rateLimit })
    onTestFinished(() => own.stop())
    const other = await startProcess({
      DATABASE_URL: stage.database.ownerUrl,
      DATA_DIR: dataDir,
      RATE_LIMIT_REQUESTS: String(rateLimit.requests),
      RATE_LIMIT_WINDOW_MS: String(rateLimit.windowMs),
    })
    onTestFinished(() => other.kill())
    const services = [own, other]
    const limited = credentials(await stage.staff.token('ONE', 'api', folders.first), stage.secret)
    const unlimited = credentials(await stage.staff.token('ONE', 'api', folders.first), stage.secret)
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
      expect([headers.get('x-rate-limit-total'), headers.get('x-rate-limit-remaining')]).toEqual(['5', '0'])
      const untilReset = Number(headers.get('x-rate-limit-reset')) - Date.now()
      expect(Math.abs(Number(headers.get('retry-after')) * 1000 - untilReset)).toBeLessThan(60_000)
    }
    expect((await request(own.url + keyInfo, unlimited)).status).toBe(200)
  })

  test('admits the token again in the next window', async ({ onTestFinished }) => {
    const rateLimit = { requests: 1, windowMs: 100, concurrent: 10 }
    const limited = await startTestService(stage.database, { rateLimit })
    onTestFinished(() => limited.stop())
    const headers = credentials(await stage.staff.token('ONE', 'api', folders.first), stage.secret)
    const ask = async () => (await request(limited.url + keyInfo, headers)).status
    // Two requests in a row may fall into two windows.
    await until(async () => [await ask(), await ask()].includes(429))
    await until(async () => (await ask()) === 200)
  })

  test('counts concurrent requests exactly', async ({ onTestFinished }) => {
    const rateLimit = { requests: 20, windowMs: 3_600_000, concurrent: 10 }
    const limited = await startTestService(stage.database, { rateLimit })
    onTestFinished(() => limited.stop())
    const headers = credentials(await stage.staff.token('ONE', 'api', folders.first), stage.secret)
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => request(limited.url + keyInfo, headers)),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(20)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(10)
  })
})
