/** Several dispatchers at once, their search for work, their end, and the loss of their database. */
import { expect, test } from 'vitest'
import { limits } from '../../../src/config.ts'
import { forEachTest } from '../../support/for-tests.ts'
import { answerWith } from '../../support/receiver.ts'
import { connect } from '../../support/servers/database.ts'
import {
  deliveriesOf,
  documentEvent,
  documents,
  namesOf,
  numbered,
  setWebhookStage,
} from '../../support/stages/webhooks.ts'
import { until } from '../../support/until.ts'

const stage = forEachTest(setWebhookStage)
const owner = forEachTest(() => connect(stage.ownerUrl))

test('a subscriber gets one request at a time and no event twice, however many dispatchers run', async () => {
  const paths = ['/a', '/b', '/c', '/d']
  for (const path of paths) {
    await stage.subscribe(path)
    stage.receiver.behave(path, (response) => void setTimeout(() => response.writeHead(204).end(), 5))
  }
  for (let dispatcher = 0; dispatcher < 3; dispatcher++) stage.dispatch()
  for (let first = 0; first < 300; first += 10) await stage.publish(documents(numbered(10, first)))
  for (const path of paths) {
    await until(() => stage.receiver.accepted(path).length >= 300)
    expect(namesOf(stage.receiver.accepted(path))).toEqual(numbered(300))
    expect(stage.receiver.atOnce(path)).toBe(1)
  }
})

test('a search reads a few rows, however many events for others lie in between', async () => {
  const folder = (id: string) => ({ folderIds: [id] })
  for (const number of [1, 2, 3])
    await stage.subscribe(`/kind${number}`, { onEvents: ['portfolio', 'connector'] })
  for (const number of [1, 2, 3]) await stage.subscribe(`/folder${number}`, folder('112'))
  for (let first = 0; first < 5; first++)
    await stage.publish(numbered(2_000).map((name) => documentEvent(name, '111')))
  await stage.sql('analyze events')
  const idle = await stage.rowsReadBySearch()
  expect(idle.found).toBe(0)
  expect(idle.rows).toBeLessThanOrEqual(9)
  await stage.publish([documentEvent('last', '112')])
  const busy = await stage.rowsReadBySearch()
  expect(busy.found).toBe(3)
  expect(busy.rows).toBeLessThanOrEqual(9)
})

test('the position of a subscription moves to the newest event if no event since then is for it', async () => {
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

test('a stopping dispatcher waits for the response to a request under way, and sends nothing more', async () => {
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

test('a stopping dispatcher sends nothing for subscriptions that have a slot and wait for the database', async () => {
  const paths = numbered(20).map((name) => `/${name}`)
  for (const path of paths) await stage.subscribe(path)
  await owner.query('begin; select from grandlivre.subscriptions for no key update')
  await stage.publish(documents(['a']))
  const { close } = stage.dispatch()
  await until(
    async () =>
      (
        await stage.sql(`select from pg_stat_activity where wait_event_type = 'Lock'
        and datname = current_database() and query like 'select pass_gate() from subscriptions%'`)
      ).length === limits.directConnectionsMax,
  )
  const closed = close()
  await owner.query('commit')
  await closed
  expect(paths.flatMap((path) => stage.receiver.requests(path))).toEqual([])
  stage.dispatch()
  for (const path of paths) await until(() => stage.receiver.accepted(path).length === 1)
})

test('a stopping dispatcher cuts off a silent receiver, whose delivery the next dispatcher sends again', async () => {
  const id = await stage.subscribe('/one')
  stage.receiver.behave('/one', () => {})
  const first = stage.dispatch({ timing: { stopMs: 300 } })
  await stage.publish(documents(['a']))
  await until(() => stage.receiver.requests('/one').length === 1)
  await first.close()
  expect(await deliveriesOf(stage, id)).toMatchObject([{ state: 'pending', attempts: 0 }])
  expect(first.logged.filter(({ event }) => event !== 'delivery.sent')).toEqual([])
  stage.receiver.behave('/one', answerWith(204))
  stage.dispatch()
  await until(() => stage.receiver.accepted('/one').length === 1)
})

test('a response outlives the database connection, and is recorded when the database is back', async () => {
  const id = await stage.subscribe('/one')
  let answer = () => {}
  stage.receiver.behave('/one', (response, _, attempt) => {
    answer = () => void response.writeHead(204).end()
    if (attempt > 1) answer()
  })
  let clockReads = 0
  const now = () => {
    clockReads += 1
    return Date.now()
  }
  stage.dispatch({ clock: { now, random: () => 0 } })
  await stage.publish(documents(['a']))
  await until(() => stage.receiver.requests('/one').length === 1)
  await stage.proxy.cut()
  const before = clockReads
  answer()
  // While its database is away, a dispatcher reads the clock only to record a response.
  await until(() => clockReads > before)
  await stage.proxy.restore()
  await until(async () => (await deliveriesOf(stage, id))[0].state === 'delivered')
  await stage.publish(documents(['b']))
  await until(() => stage.receiver.accepted('/one').length === 2)
  expect(namesOf(stage.receiver.accepted('/one'))).toEqual(['a', 'b'])
})

test('a delivery that cannot be stored does not cause the previous one to be sent again', async () => {
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
  await until(() => logged.some(({ event }) => event === 'subscription.error'))
  expect(await deliveriesOf(stage, id)).toMatchObject([{ state: 'delivered', attempts: 1 }])
})
