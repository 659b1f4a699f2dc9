/** Which subscriptions receive events, and starting with which event, on a real database and real HTTP. */
import { expect, test } from 'vitest'
import { encrypt, makeToken, sha256 } from '../../../src/auth/secrets.ts'
import { createPool } from '../../../src/db/pool.ts'
import { sweepEvents } from '../../../src/webhooks/retention.sql.ts'
import { forEachTest } from '../../support/for-tests.ts'
import { answerWith } from '../../support/receiver.ts'
import { testMasterKey } from '../../support/service.ts'
import {
  deliveriesOf,
  documents,
  namesOf,
  numbered,
  sequencesOf,
  setWebhookStage,
} from '../../support/stages/webhooks.ts'
import { until } from '../../support/until.ts'

const stage = forEachTest(setWebhookStage)
const pool = forEachTest(() => createPool(stage.serviceUrl, { max: 1, applicationName: 'grandlivre test' }))

test('a new secret of the third party signs from the next delivery on', async () => {
  await stage.subscribe('/one')
  stage.dispatch()
  await stage.publish(documents(['before']))
  await until(() => stage.receiver.accepted('/one').length === 1)
  const fresh = makeToken('secret')
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

test('410 disables a subscription; enabled again, it goes on where it stopped, in order', async () => {
  const id = await stage.subscribe('/one')
  stage.receiver.behave('/one', answerWith(410))
  const { logged } = stage.dispatch()
  await stage.publish(documents(['a']))
  await until(() => logged.some(({ event }) => event === 'subscription.disabled'))
  await until(async () => !(await stage.sql('select enabled from subscriptions'))[0].enabled)
  expect(await deliveriesOf(stage, id)).toMatchObject([{ state: 'pending', attempts: 1, sent: false }])
  stage.receiver.behave('/one', answerWith(204))
  await stage.publish(documents(['while disabled']))
  await stage.enable(id)
  await stage.publish(documents(['b']))
  await until(() => stage.receiver.accepted('/one').length === 3)
  expect(namesOf(stage.receiver.accepted('/one'))).toEqual(['a', 'while disabled', 'b'])
  const [refused, repeated] = stage.receiver.requests('/one')
  expect(repeated!.body).toEqual(refused!.body)
  expect(sequencesOf(stage.receiver.requests('/one')).at(-1)).toBe(3)
})

test('a subscription without an address gets nothing; with an address again, deliveries continue after the last one', async () => {
  const id = await stage.subscribe('/one')
  stage.dispatch()
  await stage.publish(documents(['a']))
  await until(async () => (await deliveriesOf(stage, id))[0]?.state === 'delivered')
  const [{ post_url: postUrl }] = await stage.sql('select post_url from subscriptions')
  await stage.sql('update subscriptions set post_url = null')
  await stage.subscribe('/marker')
  await stage.publish(documents(['b']))
  await until(() => stage.receiver.accepted('/marker').length === 1)
  expect((await deliveriesOf(stage, id)).length).toBe(1)
  await stage.sql('update subscriptions set post_url = $1 where id = $2', [postUrl, id])
  await stage.publish(documents(['c']))
  await until(() => stage.receiver.accepted('/one').length === 3)
  expect(namesOf(stage.receiver.accepted('/one'))).toEqual(['a', 'b', 'c'])
  expect(sequencesOf(stage.receiver.requests('/one'))).toEqual([1, 2, 3])
})

test('events that expire while a subscription is disabled appear as a gap in its numbers', async () => {
  const id = await stage.subscribe('/one')
  const disable = () =>
    stage.sql(`update subscriptions set enabled = false, disabled_at = now(), disabled_reason = 'x'`)
  const expire = async () => {
    await stage.sql(`update events set created_at = now() - interval '31 days'`)
    await sweepEvents(pool, Date.now())
  }
  await disable()
  // More than the events of one delivery.
  await stage.publish(documents(numbered(150)))
  await expire()
  await stage.publish(documents(['kept']))
  await stage.enable(id)
  const dispatcher = stage.dispatch()
  await until(() => stage.receiver.accepted('/one').length === 1)
  expect(namesOf(stage.receiver.accepted('/one'))).toEqual(['kept'])
  expect(sequencesOf(stage.receiver.requests('/one'))).toEqual([151])
  await until(async () => (await deliveriesOf(stage, id)).every(({ state }) => state === 'delivered'))
  // No event is left: searches pass over the subscription until the next event.
  await disable()
  await stage.publish(documents(['gone']))
  await expire()
  await stage.enable(id)
  await until(
    async () => (await stage.sql('select from subscriptions where collected = numbered')).length === 1,
  )
  expect((await stage.rowsReadBySearch()).found).toBe(0)
  await stage.publish(documents(['next']))
  await until(() => stage.receiver.accepted('/one').length === 2)
  expect(sequencesOf(stage.receiver.requests('/one'))).toEqual([151, 153])
  expect(dispatcher.logged.filter(({ event }) => event.endsWith('error'))).toEqual([])
})

test('a disconnected third party gets nothing, and resumes where it was when reconnected', async () => {
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

test('a deleted subscription gets no further request, not even a pending retry', async () => {
  const id = await stage.subscribe('/one')
  const clock = { now: Date.now() }
  stage.receiver.behave('/one', answerWith(500))
  stage.dispatch({ clock: { now: () => clock.now, random: () => 0 } })
  await stage.publish(documents(['a']))
  await until(async () => (await deliveriesOf(stage, id))[0]?.attempts === 1)
  await stage.sql('delete from subscriptions where id = $1', [id])
  const other = await stage.subscribe('/other')
  clock.now += 3_600_000
  await stage.publish(documents(['b']))
  await until(async () => (await deliveriesOf(stage, other))[0]?.state === 'delivered')
  expect(stage.receiver.requests('/one').length).toBe(1)
})

test('replays are sent beside new events, with their original webhookIds and numbers', async () => {
  const id = await stage.subscribe('/one')
  stage.receiver.behave('/one', answerWith(500))
  stage.dispatch()
  await stage.publish(documents(['a']))
  await until(async () => (await deliveriesOf(stage, id))[0]?.attempts === 1)
  const [refused] = stage.receiver.requests('/one')
  // As after the last retry.
  await stage.sql(`update deliveries set state = 'failed', next_attempt_at = null, finished_at = now()`)
  stage.receiver.behave('/one', answerWith(204))
  await stage.replayFailed(id)
  await stage.publish(documents(['b']))
  await until(() => stage.receiver.accepted('/one').length === 2)
  expect(new Set(namesOf(stage.receiver.accepted('/one')))).toEqual(new Set(['a', 'b']))
  const again = stage.receiver.requests('/one').filter(({ body }) => body.equals(refused!.body))
  expect(sequencesOf(again)).toEqual([1, 1])
  await until(async () => (await deliveriesOf(stage, id)).every(({ state }) => state === 'delivered'))
  expect((await deliveriesOf(stage, id)).map(({ attempts }) => attempts)).toEqual([2, 1])
})

test('a subscription for all schemas gets the events of each, including schemas created later', async () => {
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

test('a secret that cannot be decrypted holds up only its own third party', async () => {
  await stage.subscribe('/one')
  await stage.subscribeOther('/other')
  await stage.sql(
    `update third_party_secrets set secret_encrypted = decode(repeat('00', 60), 'hex')
    where third_party_id = $1`,
    [stage.thirdPartyId],
  )
  const { logged } = stage.dispatch()
  await stage.publish(documents(['a']))
  await until(() => logged.some(({ event }) => event === 'subscription.error'))
  await until(() => stage.receiver.requests('/other').length === 1)
  expect(stage.receiver.requests('/one')).toEqual([])
})
