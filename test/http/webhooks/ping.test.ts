/** A ping: one event, sent when its owner asks for it. */
import { expect, test } from 'vitest'
import { forTests } from '../../support/for-tests.ts'
import { answerWith } from '../../support/receiver.ts'
import { setReceivingStage } from '../../support/stages/receiving-stage.ts'
import { codeOf } from '../../support/stages/webhook-routes.ts'
import { documentEvent } from '../../support/stages/webhooks.ts'
import { until } from '../../support/until.ts'

const stage = forTests(setReceivingStage)

const ping = (id: number, headers?: Record<string, string>) =>
  stage.call('POST', `/${id}/ping`, undefined, headers)

test('a ping sends one event without a number, and shows the answer of the receiver', async () => {
  const { id } = await stage.subscribe('/one')
  const receiverDate = Date.UTC(2026, 10, 22, 12)
  const date = new Date(receiverDate).toUTCString()
  stage.receiver.behave('/one', (response) => void response.writeHead(418, { date }).end('é'.repeat(600)))
  const before = Date.now()
  const { status, headers, body } = await ping(id)
  expect(status).toBe(200)
  expect(headers.get('cache-control')).toBe('private, no-store')
  // The 1,024 bytes are 512 letters of two bytes.
  expect(body).toEqual({
    at: expect.any(Number),
    status: 418,
    milliseconds: expect.any(Number),
    error: null,
    answer: 'é'.repeat(512),
    fault: null,
    receiverDate,
    disabled: null,
  })
  expect([body.at >= before, body.at <= Date.now()]).toEqual([true, true])
  const [request, ...others] = stage.receiver.requests('/one')
  expect(others).toEqual([])
  expect(request!.headers['webhook-sequence']).toBeUndefined()
  expect(request!.headers.date).toBe(String(body.at))
  expect(request!.events).toEqual([
    {
      name: 'ping',
      operation: 'VOID',
      scope: { schemaId: 100, firmId: 110, accountingFolderId: 111 },
      data: {},
      webhookId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      createdAt: body.at,
    },
  ])
  expect(stage.receiver.forged).toEqual([])
})

test('a ping leaves the subscription and its deliveries unchanged, even if the receiver answers 410', async () => {
  const { id } = await stage.subscribe('/gone')
  stage.receiver.behave('/gone', answerWith(410))
  expect((await ping(id)).body).toMatchObject({ status: 410, error: null, answer: '' })
  const state = `select enabled, failing_since, last_success_at from grandlivre.subscriptions where id = $1`
  expect(await stage.sql(state, [id])).toEqual([
    { enabled: true, failing_since: null, last_success_at: null },
  ])
  stage.receiver.behave('/gone', answerWith(204))
  await stage.publish([documentEvent('a', '111')])
  await until(() => stage.receiver.requests('/gone').length === 2)
  const deliveries = `select from grandlivre.deliveries where subscription_id = $1`
  expect(await stage.sql(deliveries, [id])).toHaveLength(1)
})

test('a ping to an unreachable receiver shows the error', async () => {
  const { id } = await stage.subscribe('/')
  await stage.sql('update grandlivre.subscriptions set post_url = $2 where id = $1', [
    id,
    'http://127.0.0.1:1/',
  ])
  const { status, body } = await ping(id)
  expect([status, body.status, body.answer, body.fault]).toEqual([200, null, null, 'connection-refused'])
  expect(body.error).toContain('ECONNREFUSED')
})

test('a second ping within a second is refused, and pings are allowed again later', async () => {
  const { id } = await stage.subscribe('/often')
  const answers = await Promise.all([ping(id), ping(id), ping(id)])
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 429, 429])
  const refused = answers.find(({ status }) => status === 429)!
  expect(codeOf(refused)).toEqual([429, 'ERR-TOO-MANY-REQUEST'])
  expect(refused.headers.get('retry-after')).toBe('1')
  expect(stage.receiver.requests('/often')).toHaveLength(1)
  const earlier = `update grandlivre.subscriptions set pinged_at = pinged_at - interval '1 second' where id = $1`
  await stage.sql(earlier, [id])
  expect((await ping(id)).status).toBe(200)
})

test('a disabled subscription may be pinged; the subscription of another third party is not found', async () => {
  const { id } = await stage.subscribe('/disabled')
  await stage.sql(
    `update grandlivre.subscriptions set enabled = false, disabled_at = now(), disabled_reason = 'test' where id = $1`,
    [id],
  )
  expect(codeOf(await ping(id, stage.stranger))).toEqual([404, 'ERR-WEBHOOK-NOT-FOUND'])
  expect(stage.receiver.requests('/disabled')).toEqual([])
  const { body } = await ping(id)
  expect(body).toMatchObject({ status: 204, disabled: { since: expect.any(Number), reason: 'test' } })
  expect(Math.abs(body.disabled.since - body.at)).toBeLessThan(600_000)
})

test('a subscription without an address cannot be pinged', async () => {
  const { id } = await stage.subscribe('/none')
  await stage.sql('update grandlivre.subscriptions set post_url = null where id = $1', [id])
  expect(codeOf(await ping(id))).toEqual([409, 'ERR-WEBHOOK-PULL-ONLY'])
})
