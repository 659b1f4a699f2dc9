/**
 * A primary is lost and a standby takes its place, under load. Every request meanwhile is answered normally or with 503
 * and Retry-After. Nothing that the database refused counts against a delivery or a full export.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { routes } from '../../src/http/app.ts'
import { forTests } from '../support/for-tests.ts'
import { ended, trigger } from '../support/full-export.ts'
import { setLossyFailover } from '../support/replication/lossy-failover.ts'
import { request } from '../support/service.ts'
import { numbered } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

const stage = forTests(setLossyFailover)

interface Answered {
  route: string
  status: number
  retryAfter: string | null
}

/** Every route that knows its caller, except those that would end the caller's own access. */
const called = routes.filter(({ scope, method }) => scope !== 'open' && method !== 'delete')

const parameters = 'version=1.0.0&idExercice=11&format=JSON'

test('every route answers normally or with 503 while the primary is lost and a standby is promoted', async () => {
  const { service, company } = stage
  const answers: Answered[] = []
  const broken: string[] = []
  let isOver = false
  const ask = async (method: string, path: string, query: string) => {
    const route = `${method.toUpperCase()} ${path}`
    const url = `${service.url}${path.replaceAll(/\{\w+\}/g, '1')}?${query}`
    try {
      const { status, headers } = await request(url, company, method.toUpperCase())
      answers.push({ route, status, retryAfter: headers.get('retry-after') })
    } catch (error) {
      // A stream that is being sent must break off.
      broken.push(`${route}: ${error}`)
    }
  }
  const cursor = (
    await fetch(`${service.url}/api/v1/mad/movements?${parameters}`, { headers: company })
  ).headers.get('x-ledger-cursor')!
  const subscribed = await fetch(`${service.url}/api/v1/webhook`, {
    method: 'POST',
    headers: { ...company, 'Content-Type': 'application/json' },
    body: JSON.stringify({ postUrl: `${stage.receiver.url}/hook`, onEvents: ['document'] }),
  })
  expect(subscribed.status).toBe(201)
  const asking = called.map(async ({ method, path }) => {
    while (!isOver) await ask(method, path, parameters)
  })
  // Some of these requests wait when the server is lost; others begin to wait while it is away.
  const waiting = Array.from({ length: 5 }, async () => {
    while (!isOver) {
      await ask('get', '/api/v1/mad/movements', `version=1.0.0&idExercice=11&since=${cursor}&wait=1`)
      await delay(50)
    }
  })
  await stage.publish(numbered(5))
  await stage.standby.catchUp()
  const { body } = await trigger(service.url, company)
  expect(body.id).toMatch(/^export_/)
  await stage.standby.catchUp()
  await stage.lose()
  // The server is not promoted yet, so it refuses every request.
  const before = answers.length
  await until(() => new Set(answers.slice(before).map(({ route }) => route)).size >= called.length)
  await stage.promote()
  await stage.publish(numbered(5, 5))
  await until(() => stage.receiver.accepted('/hook').length >= 10)
  await until(async () => (await request(`${service.url}/readyz`)).status === 200)
  isOver = true
  await Promise.all([...asking, ...waiting])
  expect(answers.filter(({ status }) => status >= 500 && status !== 503)).toEqual([])
  const away = answers.filter(({ status }) => status === 503)
  expect(new Set(away.map(({ route }) => route)).size).toBeGreaterThan(20)
  expect(away.filter(({ retryAfter }) => !(Number(retryAfter) > 0))).toEqual([])
  expect(broken.filter((each) => !/movements|entries|all|ledgers/.test(each))).toEqual([])
  const faults = service.lines.filter((line) =>
    /ERR-INTERNAL|"subscription\.error"|"export\.failed"/.test(line),
  )
  expect(faults).toEqual([])
  const attempts = await stage.sql('select distinct state, attempts from deliveries where not is_replay')
  expect(attempts).toEqual([{ state: 'delivered', attempts: 1 }])
  expect((await ended(service.url, company, body.id)).status).toBe('DONE')
})
