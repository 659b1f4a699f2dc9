/** Deliveries from the event to the subscriber, through dispatchers on a real database and real HTTP. */

import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { expect, type TestContext, test } from 'vitest'
import packageJson from '../package.json' with { type: 'json' }
import { encrypt, makePartnerSecret, sha256 } from '../src/auth/secrets.ts'
import type { NewEvent } from '../src/events/events.sql.ts'
import { answerWith } from './support/receiver.ts'
import { testMasterKey, until } from './support/service.ts'
import { documentEvent, namesOf, setWebhookStage, type WebhookStage } from './support/webhooks.ts'

async function stageOf({ onTestFinished }: TestContext): Promise<WebhookStage> {
  const stage = await setWebhookStage()
  onTestFinished(() => stage.close())
  return stage
}

const numbered = (count: number, first = 0) =>
  Array.from({ length: count }, (_, number) => `n${first + number}`)
const documents = (names: string[]) => names.map((name) => documentEvent(name))

/** By which no retry is ever due, however long the test takes. */
const standingClock = () => {
  const now = Date.now()
  return { now: () => now, random: () => 0 }
}

const deliveriesOf = (stage: WebhookStage, subscriptionId: string) =>
  stage.sql(
    `select id, state, attempts, events, body is null as sent from deliveries where subscription_id = $1 order by id`,
    [subscriptionId],
  )

test('events reach a subscriber in their order, a hundred to a request at the most', async (context) => {
  const stage = await stageOf(context)
  const id = await stage.subscribe('/one')
  stage.dispatch()
  await stage.publish(documents(numbered(250)))
  await until(() => stage.receiver.accepted('/one').length >= 250)
  expect(namesOf(stage.receiver.accepted('/one'))).toEqual(numbered(250))
  expect(stage.receiver.requests('/one').map(({ events }) => events.length)).toEqual([100, 100, 50])
  expect(stage.receiver.forged).toEqual([])
  await until(async () => (await deliveriesOf(stage, id)).every(({ state }) => state === 'delivered'))
  // Of what has arrived the body is not kept.
  expect((await deliveriesOf(stage, id)).every(({ sent }) => sent)).toBe(true)
})

test('a request says what it is, when it was sent and by whom, and nothing else', async (context) => {
  const stage = await stageOf(context)
  await stage.subscribe('/one?key=1')
  const before = Date.now()
  stage.dispatch()
  await stage.publish([documentEvent('a', '111')])
  await until(() => stage.receiver.accepted('/one?key=1').length === 1)
  const [request] = stage.receiver.requests('/one?key=1')
  const { date, signature, ...headers } = request!.headers
  expect(headers).toEqual({
    host: new URL(stage.receiver.url).host,
    connection: 'keep-alive',
    'content-type': 'application/json',
    'content-length': String(request!.body.length),
    'user-agent': `Grandlivre/${packageJson.version}`,
  })
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

test('a receiver that makes the JSON again before it verifies accepts every event, whatever strings it holds', async (context) => {
  const stage = await stageOf(context)
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

test('a delivery that is refused is sent again byte by byte, signed anew, and what follows waits for it', async (context) => {
  const stage = await stageOf(context)
  const id = await stage.subscribe('/one')
  const clock = { now: Date.parse('2026-11-21T12:00:00Z') }
  let refuse = () => {}
  stage.receiver.behave('/one', (response, _, attempt) => {
    refuse = () => void response.writeHead(503).end()
    if (attempt > 1) response.writeHead(204).end()
  })
  stage.dispatch({ now: () => clock.now, random: () => 0 })
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
  expect(stage.receiver.forged).toEqual([])
})

test('a redirect is a failure, and nobody follows it', async (context) => {
  const stage = await stageOf(context)
  const id = await stage.subscribe('/one')
  stage.receiver.behave('/one', answerWith(307, { location: `${stage.receiver.url}/elsewhere` }))
  stage.dispatch(standingClock())
  await stage.publish(documents(['a']))
  await until(async () => (await deliveriesOf(stage, id))[0]?.attempts === 1)
  expect(stage.receiver.requests('/elsewhere')).toEqual([])
  expect(await stage.sql('select status, error from delivery_attempts')).toEqual([
    { status: 307, error: null },
  ])
})

test('of an answer four kilobytes are kept, and one without an end does not hold a subscriber up', async (context) => {
  const stage = await stageOf(context)
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

test('a receiver has ten seconds in all, and the others wait for none of them', {
  timeout: 120_000,
}, async (context) => {
  const stage = await stageOf(context)
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
  stage.dispatch(standingClock())
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
    expect(attempt).toMatchObject({ status: null, error: 'no answer within 10 seconds' })
    expect(attempt.latency_ms).toBeGreaterThanOrEqual(9_900)
  }
})

test('a subscriber gets one request at a time, from however many processes, and no event twice', async (context) => {
  const stage = await stageOf(context)
  const paths = ['/a', '/b', '/c', '/d']
  for (const path of paths) {
    await stage.subscribe(path)
    stage.receiver.behave(path, (response) => void setTimeout(() => response.writeHead(204).end(), 5))
  }
  for (let process = 0; process < 3; process++) stage.dispatch()
  for (let first = 0; first < 300; first += 10) await stage.publish(documents(numbered(10, first)))
  for (const path of paths) {
    await until(() => stage.receiver.accepted(path).length >= 300)
    expect(namesOf(stage.receiver.accepted(path))).toEqual(numbered(300))
    expect(stage.receiver.atOnce(path)).toBe(1)
  }
})

test('the newest secret signs, from its rotation on', async (context) => {
  const stage = await stageOf(context)
  await stage.subscribe('/one')
  stage.dispatch()
  await stage.publish(documents(['before']))
  await until(() => stage.receiver.accepted('/one').length === 1)
  const fresh = makePartnerSecret()
  await stage.sql('update third_party_secrets set retired_at = now()')
  await stage.sql(
    'insert into third_party_secrets (third_party_id, secret_hash, secret_encrypted) values ($1, $2, $3)',
    [stage.thirdPartyId, sha256(fresh), encrypt(fresh, testMasterKey)],
  )
  stage.receiver.expectSecret(fresh)
  await stage.publish(documents(['after']))
  await until(() => stage.receiver.accepted('/one').length === 2)
  expect(stage.receiver.forged).toEqual([])
})

test('410 disables a subscription; enabled again it gets what happens from then on', async (context) => {
  const stage = await stageOf(context)
  const id = await stage.subscribe('/one')
  stage.receiver.behave('/one', answerWith(410))
  const { logged } = stage.dispatch()
  await stage.publish(documents(['a']))
  await until(() => logged.some(({ event }) => event === 'subscription.disabled'))
  await until(async () => !(await stage.sql('select enabled from subscriptions'))[0].enabled)
  expect(await deliveriesOf(stage, id)).toMatchObject([{ state: 'failed', attempts: 1, sent: false }])
  stage.receiver.behave('/one', answerWith(204))
  await stage.publish(documents(['while disabled']))
  await stage.enable(id)
  await stage.publish(documents(['b']))
  await until(() => stage.receiver.accepted('/one').length === 1)
  expect(namesOf(stage.receiver.accepted('/one'))).toEqual(['b'])
})

test('a disconnected third party gets nothing, and goes on where it was once it is connected', async (context) => {
  const stage = await stageOf(context)
  await stage.subscribe('/one')
  const other = await stage.subscribeOther('/other')
  await stage.sql(
    `update third_parties set disconnected_at = now(), disconnected_reason = 'x' where code = 'ONE'`,
  )
  stage.dispatch()
  await stage.publish(documents(['a']))
  await until(() => stage.receiver.requests('/other').length === 1)
  await until(async () => (await deliveriesOf(stage, other))[0]?.state === 'delivered')
  expect(stage.receiver.requests('/one')).toEqual([])
  await stage.sql(
    `update third_parties set disconnected_at = null, disconnected_reason = null where code = 'ONE'`,
  )
  await until(() => stage.receiver.accepted('/one').length === 1)
})

test('a deleted subscription gets no further request, not even one that was being tried again', async (context) => {
  const stage = await stageOf(context)
  const id = await stage.subscribe('/one')
  const clock = { now: Date.now() }
  stage.receiver.behave('/one', answerWith(500))
  stage.dispatch({ now: () => clock.now, random: () => 0 })
  await stage.publish(documents(['a']))
  await until(async () => (await deliveriesOf(stage, id))[0]?.attempts === 1)
  await stage.sql('delete from subscriptions where id = $1', [id])
  const other = await stage.subscribe('/other')
  clock.now += 3_600_000
  await stage.publish(documents(['b']))
  await until(async () => (await deliveriesOf(stage, other))[0]?.state === 'delivered')
  expect(stage.receiver.requests('/one').length).toBe(1)
})

test('replays are sent beside new events, under the ids they had', async (context) => {
  const stage = await stageOf(context)
  const id = await stage.subscribe('/one')
  stage.receiver.behave('/one', answerWith(410))
  stage.dispatch()
  await stage.publish(documents(['a']))
  await until(async () => (await deliveriesOf(stage, id))[0]?.state === 'failed')
  const [refused] = stage.receiver.requests('/one')
  stage.receiver.behave('/one', answerWith(204))
  await stage.enable(id)
  await stage.replayFailed(id)
  await stage.publish(documents(['b']))
  await until(() => stage.receiver.accepted('/one').length === 2)
  expect(new Set(namesOf(stage.receiver.accepted('/one')))).toEqual(new Set(['a', 'b']))
  expect(stage.receiver.requests('/one').filter(({ body }) => body.equals(refused!.body)).length).toBe(2)
  await until(async () => (await deliveriesOf(stage, id)).every(({ state }) => state === 'delivered'))
  expect((await deliveriesOf(stage, id)).map(({ attempts }) => attempts)).toEqual([2, 1])
})

test('a subscription for all schemas gets the events of each, those made later included', async (context) => {
  const stage = await stageOf(context)
  await stage.subscribe('/all', { schemaId: null })
  stage.dispatch()
  await stage.publish(documents(['a', 'b']), '100')
  await stage.publish(documents(['c', 'd']), '200')
  await stage.sql(`insert into schemas (schema_id, name) values (300, 'Late')`)
  await stage.publish(documents(['e']), '300')
  await until(() => stage.receiver.accepted('/all').length === 5)
  const events = stage.receiver.accepted('/all')
  const of = (schemaId: number) => namesOf(events.filter(({ scope }) => scope['schemaId'] === schemaId))
  expect([of(100), of(200), of(300)]).toEqual([['a', 'b'], ['c', 'd'], ['e']])
})

test('a look reads a few rows, however many events lie behind that are for others', async (context) => {
  const stage = await stageOf(context)
  const folder = (id: string) => ({ folderIds: [id] })
  for (const number of [1, 2, 3])
    await stage.subscribe(`/kind${number}`, { onEvents: ['portfolio', 'connector'] })
  for (const number of [1, 2, 3]) await stage.subscribe(`/folder${number}`, folder('112'))
  for (let first = 0; first < 5; first++)
    await stage.publish(numbered(2_000).map((name) => documentEvent(name, '111')))
  await stage.sql('analyze events')
  const idle = await stage.rowsReadByLook()
  expect(idle.found).toBe(0)
  expect(idle.rows).toBeLessThanOrEqual(9)
  await stage.publish([documentEvent('last', '112')])
  const busy = await stage.rowsReadByLook()
  expect(busy.found).toBe(3)
  expect(busy.rows).toBeLessThanOrEqual(9)
})

test('positions with nothing behind them for anybody are moved to the present', async (context) => {
  const stage = await stageOf(context)
  await stage.subscribe('/idle', { onEvents: ['portfolio'] })
  await stage.subscribe('/busy')
  await stage.publish(documents(numbered(1_500)))
  stage.dispatch()
  await until(() => stage.receiver.accepted('/busy').length === 1_500)
  const positions = () => stage.sql('select position from subscription_positions where position >= 1500')
  await until(async () => (await positions()).length === 2)
  await stage.publish([{ name: 'portfolio', operation: 'CREATE', data: { id: '1' } }])
  await until(() => stage.receiver.accepted('/idle').length === 1)
})

test('stopped, a dispatcher waits for the answer to what it has sent, and begins nothing more', async (context) => {
  const stage = await stageOf(context)
  const id = await stage.subscribe('/one')
  let answer = () => {}
  stage.receiver.behave('/one', (response) => {
    answer = () => void response.writeHead(204).end()
  })
  const first = stage.dispatch()
  await stage.publish(documents(['a']))
  await until(() => stage.receiver.requests('/one').length === 1)
  await stage.publish(documents(['b']))
  const closed = first.close()
  answer()
  await closed
  expect(await deliveriesOf(stage, id)).toMatchObject([{ state: 'delivered', attempts: 1 }])
  stage.receiver.behave('/one', answerWith(204))
  stage.dispatch()
  await until(() => stage.receiver.accepted('/one').length === 2)
  expect(namesOf(stage.receiver.accepted('/one'))).toEqual(['a', 'b'])
})

test('stopped, it cuts off a receiver that stays silent, whose delivery the next process sends again', async (context) => {
  const stage = await stageOf(context)
  const id = await stage.subscribe('/one')
  stage.receiver.behave('/one', () => {})
  const first = stage.dispatch()
  await stage.publish(documents(['a']))
  await until(() => stage.receiver.requests('/one').length === 1)
  await first.close()
  expect(await deliveriesOf(stage, id)).toMatchObject([{ state: 'pending', attempts: 0 }])
  expect(first.logged.filter(({ event }) => event !== 'delivery.sent')).toEqual([])
  stage.receiver.behave('/one', answerWith(204))
  stage.dispatch()
  await until(() => stage.receiver.accepted('/one').length === 1)
})

test('an answer outlives the connection to the database, and is written down when that is back', async (context) => {
  const stage = await stageOf(context)
  const id = await stage.subscribe('/one')
  let answer = () => {}
  stage.receiver.behave('/one', (response, _, attempt) => {
    answer = () => void response.writeHead(204).end()
    if (attempt > 1) answer()
  })
  let looks = 0
  const now = () => {
    looks += 1
    return Date.now()
  }
  stage.dispatch({ now, random: () => 0 })
  await stage.publish(documents(['a']))
  await until(() => stage.receiver.requests('/one').length === 1)
  await stage.proxy.cut()
  const before = looks
  answer()
  // Away from its database, a dispatcher asks for the time only to write down an answer.
  await until(() => looks > before)
  await stage.proxy.mend()
  await until(async () => (await deliveriesOf(stage, id))[0].state === 'delivered')
  await stage.publish(documents(['b']))
  await until(() => stage.receiver.accepted('/one').length === 2)
  expect(namesOf(stage.receiver.accepted('/one'))).toEqual(['a', 'b'])
})

test('a secret that cannot be read holds up its own third party alone', async (context) => {
  const stage = await stageOf(context)
  await stage.subscribe('/one')
  await stage.subscribeOther('/other')
  await stage.sql(
    `update third_party_secrets set secret_encrypted = decode(repeat('00', 60), 'hex')
    where third_party_id = $1`,
    [stage.thirdPartyId],
  )
  const { logged } = stage.dispatch()
  await stage.publish(documents(['a']))
  await until(() => logged.some(({ event }) => event === 'subscription.troubled'))
  await until(() => stage.receiver.requests('/other').length === 1)
  expect(stage.receiver.requests('/one')).toEqual([])
})

test('a delivery that cannot be made does not have the one before it sent again', async (context) => {
  const stage = await stageOf(context)
  const id = await stage.subscribe('/one')
  await stage.sql(`create function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'refused by the test'; end $$`)
  await stage.sql(
    'create trigger refuse before insert on deliveries for each row when (new.first_event > 1) execute function refuse()',
  )
  let answer = () => {}
  stage.receiver.behave('/one', (response) => {
    answer = () => void response.writeHead(204).end()
  })
  const { logged } = stage.dispatch()
  await stage.publish(documents(['a']))
  await until(() => stage.receiver.requests('/one').length === 1)
  await stage.publish(documents(['b']))
  answer()
  await until(() => logged.some(({ event }) => event === 'subscription.troubled'))
  expect(await deliveriesOf(stage, id)).toMatchObject([{ state: 'delivered', attempts: 1 }])
})

test('nothing is sent to this machine or without TLS, whatever was once registered', async (context) => {
  const stage = await stageOf(context)
  const { port } = new URL(stage.receiver.url)
  const reasons: [string, string][] = [
    [`http://127.0.0.1:${port}/a`, 'The address must begin with https://'],
    [`https://127.0.0.1:${port}/b`, 'The address must not lead to a private or reserved address'],
    [
      `https://localhost:${port}/c`,
      'localhost leads to a private or reserved address, where no delivery goes',
    ],
  ]
  for (const [postUrl] of reasons) await stage.subscribe('', { postUrl })
  stage.dispatch(standingClock(), { allowInsecure: false })
  await stage.publish(documents(['a']))
  await until(async () => (await stage.sql('select from delivery_attempts')).length === 3)
  const attempts = await stage.sql(
    `select s.post_url, a.error from delivery_attempts a join deliveries d on d.id = a.delivery_id
     join subscriptions s on s.id = d.subscription_id where a.status is null order by s.id`,
  )
  expect(attempts.map(({ post_url, error }) => [post_url, error])).toEqual(reasons)
})
