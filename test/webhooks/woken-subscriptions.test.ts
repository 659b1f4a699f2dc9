/** What ends the wait for a retry (docs/spec/webhooks.md#retries). */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { answerWith } from '../support/receiver.ts'
import { type ReceivingStage, setReceivingStage } from '../support/stages/receiving-stage.ts'
import { documentEvent, namesOf } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

let stage: ReceivingStage
beforeAll(async () => {
  stage = await setReceivingStage()
})
afterEach(() => stage.sql('delete from grandlivre.subscriptions'))
afterAll(() => stage?.close())

let path: string
let id: number
/** A receiver is down, and its next attempt is ten minutes away, the fifth of the table. */
beforeEach(async ({ task }) => {
  path = `/${task.id}`
  stage.receiver.behave(path, answerWith(500))
  id = (await stage.subscribe(path)).id
  await stage.publish([documentEvent('a', '111')])
  await until(async () => (await waiting()).attempts > 0)
  await stage.sql('update grandlivre.deliveries set attempts = 4')
  await wait()
})

const wait = () =>
  stage.sql(`update grandlivre.deliveries set next_attempt_at = now() + interval '10 minutes'`)
const waiting = async () =>
  (
    await stage.sql(`select attempts, attempts - attempts_before_replay as used,
      next_attempt_at > now() + interval '5 minutes' as waits from grandlivre.deliveries where state = 'pending'`)
  )[0] ?? { attempts: 0 }
const received = () => namesOf(stage.receiver.accepted(path).filter(({ name }) => name === 'document'))
const read = () => stage.call('GET', `/${id}/events`)

const acts: [string, () => Promise<{ status: number }>][] = [
  ['a ping that arrives', () => stage.call('POST', `/${id}/ping`)],
  ['an empty patch', () => stage.call('PATCH', `/${id}`, [])],
  ['a merge patch', () => stage.call('PATCH', `/${id}`, { onEvents: ['document', 'ledger'] })],
  [
    'a replacement',
    () => stage.call('PUT', `/${id}`, { postUrl: stage.receiver.url + path, onEvents: ['document'] }),
  ],
  ['reading events by number', read],
]

test.each(acts)('%s sends what waits at once', async (_, act) => {
  expect(await waiting()).toEqual({ attempts: 4, used: 4, waits: true })
  stage.receiver.behave(path, answerWith(204))
  expect((await act()).status).toBe(200)
  await until(() => received().length === 1)
  expect(received()).toEqual(['a'])
})

test.each(acts.slice(1))('%s uses up no retry of a receiver that is still down', async (_, act) => {
  await act()
  await until(async () => (await waiting()).attempts === 5)
  // The same delay as before: that after the fourth attempt of the table.
  expect(await waiting()).toEqual({ attempts: 5, used: 4, waits: true })
})

test('reads in a loop send it once, and again after half a minute', async () => {
  await read()
  await until(async () => (await waiting()).attempts === 5)
  await stage.sql('update grandlivre.subscriptions set woken_at = now()')
  for (let time = 0; time < 20; time += 1) {
    await read()
    expect(await waiting()).toMatchObject({ attempts: 5, waits: true })
  }
  await stage.sql(`update grandlivre.subscriptions set woken_at = now() - interval '31 seconds'`)
  await read()
  await until(async () => (await waiting()).attempts === 6)
})

test('a ping that fails sends nothing, nor does reading a disabled subscription or one without an address', async () => {
  await stage.call('POST', `/${id}/ping`)
  expect(await waiting()).toMatchObject({ attempts: 4, waits: true })
  for (const state of [
    `enabled = false, disabled_at = now(), disabled_reason = 'x'`,
    'enabled = true, disabled_at = null, disabled_reason = null, post_url = null',
  ]) {
    await stage.sql(`update grandlivre.subscriptions set ${state}`)
    await read()
    expect(await waiting()).toMatchObject({ attempts: 4, used: 4, waits: true })
  }
})
