/** The requests that subscribers get, and what their responses lead to, on a real database and real HTTP. */
import { createHash } from 'node:crypto'
import { type AddressInfo, createServer } from 'node:net'
import { expect, test } from 'vitest'
import packageJson from '../../../package.json' with { type: 'json' }
import type { NewEvent } from '../../../src/events/events.sql.ts'
import { forEachTest } from '../../support/for-tests.ts'
import { answerWith } from '../../support/receiver.ts'
import {
  deliveriesOf,
  documentEvent,
  documents,
  namesOf,
  numbered,
  setWebhookStage,
  standingClock,
} from '../../support/stages/webhooks.ts'
import { until } from '../../support/until.ts'

const stage = forEachTest(setWebhookStage)

test('events reach a subscriber in order, at most a hundred per request', async () => {
  const id = await stage.subscribe('/one')
  stage.dispatch()
  await stage.publish(documents(numbered(250)))
  await until(() => stage.receiver.accepted('/one').length >= 250)
  expect(namesOf(stage.receiver.accepted('/one'))).toEqual(numbered(250))
  expect(stage.receiver.requests('/one').map(({ events }) => events.length)).toEqual([100, 100, 50])
  expect(stage.receiver.forged).toEqual([])
  await until(async () => (await deliveriesOf(stage, id)).every(({ state }) => state === 'delivered'))
  // The body of a delivered batch is not kept.
  expect((await deliveriesOf(stage, id)).every(({ sent }) => sent)).toBe(true)
})

test('a request carries its content type, sender, signatures, numbers and digest, and no other headers', async () => {
  const id = await stage.subscribe('/one?key=1')
  const before = Date.now()
  stage.dispatch()
  await stage.publish([documentEvent('a', '111')])
  await until(() => stage.receiver.accepted('/one?key=1').length === 1)
  const [request] = stage.receiver.requests('/one?key=1')
  const { date, signature, 'webhook-signature': standard, ...headers } = request!.headers
  expect(headers).toEqual({
    host: new URL(stage.receiver.url).host,
    connection: 'keep-alive',
    'content-type': 'application/json',
    'content-length': String(request!.body.length),
    'user-agent': `Grandlivre/${packageJson.version}`,
    'webhook-id': (await deliveriesOf(stage, id))[0].id,
    'webhook-sequence': '1-1',
    'webhook-epoch': '1',
    'webhook-timestamp': String(Math.floor(Number(date) / 1000)),
    'content-digest': `sha-256=:${createHash('sha256').update(request!.body).digest('base64')}:`,
  })
  expect(standard).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/)
  expect(Number(date)).toBeGreaterThanOrEqual(before)
  expect(Number(date)).toBeLessThanOrEqual(Date.now())
  expect(signature).toMatch(/^[0-9a-f]{64}$/)
  expect(request!.events).toEqual([
    {
      name: 'document',
      operation: 'CREATE',
      scope: { schemaId: 100, firmId: 110, accountingFolderId: 111 },
      data: { id: 'a', kind: 'DB', name: 'a' },
      webhookId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      createdAt: expect.any(Number),
    },
  ])
})

test('a receiver that reserializes the JSON before verifying accepts every event, whatever its strings', async () => {
  await stage.subscribe('/one', { onEvents: ['document', 'accountingFolder', 'visitedPage'] })
  stage.dispatch()
  const strings = [
    '\u2028 \u2029 \ufeff',
    'lone \ud800 and \udc00',
    '\u0001 \u001f \u007f "quoted" \\ / \b\f\n\r\t',
    '</script> é e\u0301 ﬁ \u{1f600} \u{10ffff}',
    '-0 1e21 0.1 9007199254740993',
  ]
  const currentState = JSON.parse(
    '{"10":-0,"2":{"b":1e21,"1":1e-7},"__proto__":{"x":[]},"a":"\\ud800","é":0.1}',
  )
  await stage.publish([
    ...documents(strings),
    { name: 'accountingFolder', operation: 'UPDATE', data: { id: '1', currentState }, folderId: '111' },
    ...strings.map((path): NewEvent => ({ name: 'visitedPage', operation: 'VOID', data: { path } })),
  ])
  await until(() => stage.receiver.accepted('/one').length === 11)
  expect(stage.receiver.forged).toEqual([])
  const events = stage.receiver.accepted('/one')
  expect(namesOf(events.slice(0, 5))).toEqual(strings)
  expect(events.slice(6).map(({ data }) => data.path)).toEqual(strings)
  expect(events[5]!.data.currentState).toEqual(JSON.parse(JSON.stringify(currentState)))
})

test('a refused delivery is sent again byte for byte with a new signature, before anything after it', async () => {
  const id = await stage.subscribe('/one')
  const clock = { now: Date.parse('2026-11-21T12:00:00Z') }
  let refuse = () => {}
  stage.receiver.behave('/one', (response, _, attempt) => {
    refuse = () => void response.writeHead(503).end()
    if (attempt > 1) response.writeHead(204).end()
  })
  stage.dispatch({ clock: { now: () => clock.now, random: () => 0 } })
  await stage.publish(documents(['a']))
  await until(() => stage.receiver.requests('/one').length === 1)
  await stage.publish(documents(['b']))
  refuse()
  await until(async () => (await deliveriesOf(stage, id))[0]?.attempts === 1)
  expect((await deliveriesOf(stage, id)).length).toBe(1)
  clock.now += 5_000
  await until(() => stage.receiver.accepted('/one').length === 2)
  expect(namesOf(stage.receiver.accepted('/one'))).toEqual(['a', 'b'])
  const [first, second] = stage.receiver.requests('/one')
  expect(second!.body).toEqual(first!.body)
  expect(second!.headers['signature']).not.toBe(first!.headers['signature'])
  expect(Number(second!.headers.date) - Number(first!.headers.date)).toBe(5_000)
  expect(second!.headers['webhook-id']).toBe(first!.headers['webhook-id'])
  expect(second!.headers['webhook-signature']).not.toBe(first!.headers['webhook-signature'])
  const seconds = [first, second].map((request) => Number(request!.headers['webhook-timestamp']))
  expect(seconds).toEqual([1_795_262_400, 1_795_262_405])
  const third = stage.receiver.requests('/one')[2]!
  expect(third.headers['webhook-id']).not.toBe(first!.headers['webhook-id'])
  expect(stage.receiver.forged).toEqual([])
})

test('a redirect is a failure and is not followed', async () => {
  const id = await stage.subscribe('/one')
  stage.receiver.behave('/one', answerWith(307, { location: `${stage.receiver.url}/elsewhere` }))
  stage.dispatch({ clock: standingClock() })
  await stage.publish(documents(['a']))
  await until(async () => (await deliveriesOf(stage, id))[0]?.attempts === 1)
  expect(stage.receiver.requests('/elsewhere')).toEqual([])
  expect(await stage.sql('select status, error from delivery_attempts')).toEqual([
    { status: 307, error: null },
  ])
})

test('only four kilobytes of a response are kept, and an endless response does not delay the subscriber', async () => {
  await stage.subscribe('/long')
  let flowing = 0
  stage.receiver.behave('/long', (response) => {
    response.writeHead(200)
    flowing += 1
    response.on('close', () => {
      flowing -= 1
    })
    const flow = () => {
      while (!response.destroyed && response.write('0123456789abcdef'.repeat(512)));
    }
    response.on('drain', flow)
    flow()
  })
  stage.dispatch()
  await stage.publish(documents(['a']))
  await until(() => stage.receiver.requests('/long').length === 1)
  await until(async () => (await stage.sql('select from delivery_attempts')).length === 1)
  await stage.publish(documents(['b']))
  await until(async () => (await stage.sql('select from delivery_attempts')).length === 2)
  await until(() => flowing === 0)
  const attempts = await stage.sql(
    `select status, convert_from(answer, 'utf8') as answer from delivery_attempts`,
  )
  expect(attempts).toEqual([1, 2].map(() => ({ status: 200, answer: '0123456789abcdef'.repeat(256) })))
})

test('the timeout covers a whole request, and other receivers do not wait meanwhile', {
  timeout: 120_000,
}, async (context) => {
  const silent = await stage.subscribe('/silent')
  const healthy = await stage.subscribe('/healthy')
  const trickle = createServer((socket) => {
    socket.on('error', () => {})
    socket.write('HTTP/1.1 200 OK\r\n')
    const timer = setInterval(() => socket.write('x: y\r\n'), 200)
    socket.on('close', () => clearInterval(timer))
  })
  await new Promise<void>((resolve) => trickle.listen(0, '127.0.0.1', resolve))
  context.onTestFinished(() => void trickle.close())
  const dripping = await stage.subscribe('/', {
    postUrl: `http://127.0.0.1:${(trickle.address() as AddressInfo).port}/`,
  })
  stage.receiver.behave('/silent', () => {})
  stage.dispatch({ clock: standingClock(), timing: { timeoutMs: 3_000 } })
  let besideSilent = 0
  for (const name of numbered(20)) {
    await stage.publish(documents([name]))
    await until(() => namesOf(stage.receiver.accepted('/healthy')).includes(name))
    if ((await deliveriesOf(stage, silent)).every(({ attempts }) => attempts === 0)) besideSilent += 1
  }
  expect(besideSilent).toBeGreaterThan(0)
  expect(stage.receiver.requests('/silent').length).toBe(1)
  expect((await deliveriesOf(stage, healthy)).length).toBe(20)
  for (const id of [silent, dripping]) {
    await until(async () => (await deliveriesOf(stage, id))[0]?.attempts === 1)
    const [attempt] = await stage.sql(
      `select a.status, a.error, a.latency_ms from delivery_attempts a
       join deliveries d on d.id = a.delivery_id where d.subscription_id = $1`,
      [id],
    )
    expect(attempt).toMatchObject({ status: null, error: 'no response within 3 seconds' })
    expect(attempt.latency_ms).toBeGreaterThanOrEqual(2_900)
  }
})

test('no event is sent to this machine or without TLS, even if such a target was registered', async () => {
  const { port } = new URL(stage.receiver.url)
  const reasons: [string, string][] = [
    [`http://127.0.0.1:${port}/a`, 'The address must begin with https://'],
    [`https://127.0.0.1:${port}/b`, 'The address must not lead to a private or reserved address'],
    [
      `https://localhost:${port}/c`,
      'localhost resolves to a private or reserved address, to which nothing is delivered',
    ],
  ]
  for (const [postUrl] of reasons) await stage.subscribe('', { postUrl })
  stage.dispatch({ clock: standingClock(), rules: { allowInsecure: false } })
  await stage.publish(documents(['a']))
  await until(async () => (await stage.sql('select from delivery_attempts')).length === 3)
  const attempts = await stage.sql(
    `select s.post_url, a.error from delivery_attempts a join deliveries d on d.id = a.delivery_id
     join subscriptions s on s.id = d.subscription_id where a.status is null order by s.id`,
  )
  expect(attempts.map(({ post_url, error }) => [post_url, error])).toEqual(reasons)
  expect(stage.receiver.connections()).toBe(0)
})
