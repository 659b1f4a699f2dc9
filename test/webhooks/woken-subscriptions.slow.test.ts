/** What ends the wait for a retry (docs/spec/webhooks.md#retries). */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { forTests } from '../support/for-tests.ts'
import { answerWith } from '../support/receiver.ts'
import { setReceivingStage } from '../support/stages/receiving-stage.ts'
import { documentEvent, namesOf } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

const stage = forTests(setReceivingStage)
afterEach(() => stage.sql('delete from grandlivre.subscriptions'))

let path: string
let id: number
/** A receiver is down, and its fifth attempt is ten minutes away. */
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
  stage.sql(
    `update grandlivre.deliveries set next_attempt_at = date_trunc('second', now()) + interval '10 minutes'`,
  )
const waiting = async () =>
  (
    await stage.sql(`select attempts, attempts - attempts_before_replay as used,
      next_attempt_at > now() + interval '5 minutes' as waits from grandlivre.deliveries where state = 'pending'`)
  )[0] ?? { attempts: 0 }
const nextAttempt = async () =>
  (await stage.sql(`select next_attempt_at from grandlivre.deliveries where state = 'pending'`))[0]
    .next_attempt_at
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

test.each(acts)('%s sends waiting deliveries at once', async (_, act) => {
  expect(await waiting()).toEqual({ attempts: 4, used: 4, waits: true })
  stage.receiver.behave(path, answerWith(204))
  expect((await act()).status).toBe(200)
  await until(() => received().length === 1)
  expect(received()).toEqual(['a'])
})

test.each(acts.slice(1))(
  '%s does not move the planned retry if the receiver is still down',
  async (_, act) => {
    const planned = await nextAttempt()
    await act()
    await until(async () => (await waiting()).attempts === 5)
    expect(await waiting()).toEqual({ attempts: 5, used: 4, waits: true })
    expect(await nextAttempt()).toEqual(planned)
  },
)

/** Lets time pass: moves every time that the service compares with the present into the past. */
const pass = (seconds: number) =>
  stage.sql(
    `with s as (
       update grandlivre.subscriptions set woken_at = woken_at - $1 * interval '1 s',
         failing_since = failing_since - $1 * interval '1 s' returning id
     ), d as (
       update grandlivre.deliveries d set next_attempt_at = next_attempt_at - $1 * interval '1 s' from s
       where d.subscription_id = s.id and state = 'pending' returning d.id
     ), a as (
       update grandlivre.delivery_attempts a set at = at - $1 * interval '1 s' from d where a.delivery_id = d.id
     )
     select pg_notify('grandlivre_events', '100') from d`,
    [seconds],
  )

/** Waits until no attempt is under way. @returns seconds until the next attempt; null if the delivery has ended */
async function settled(): Promise<number | null> {
  let left: number | null = 0
  await until(async () => {
    const [row] = await stage.sql(`select state, extract(epoch from next_attempt_at - now())::float8 as left
      from grandlivre.deliveries`)
    left = row.state === 'pending' ? row.left : null
    return left === null || left > 0
  })
  return left
}

test('a delivery fails after about three days, even if its events are read all the time', async () => {
  await stage.sql('update grandlivre.deliveries set attempts_before_replay = 3')
  let passed = 0
  for (let left = await settled(); left !== null; left = await settled()) {
    for (let time = 0; time < 3; time += 1) {
      await read()
      left = await settled()
    }
    // At least five seconds, so that an attempt that a read has brought forward is sent.
    const seconds = Math.max(left! / 3, Math.min(left! + 0.01, 6))
    await pass(seconds)
    passed += seconds
    expect(passed).toBeLessThan(5 * 86_400)
  }
  expect(passed / 86_400).toBeGreaterThan(2.9)
  expect(passed / 86_400).toBeLessThan(3.4)
  const [{ attempts }] = await stage.sql('select attempts from grandlivre.deliveries')
  expect(attempts).toBeLessThan(4 + 24)
})

test('a read never overrides a Retry-After, even from an attempt that a read brought forward', async () => {
  stage.receiver.behave(path, answerWith(503, { 'retry-after': '3600' }))
  await read()
  await until(async () => (await waiting()).attempts === 5)
  const asked = await nextAttempt()
  for (let time = 0; time < 3; time += 1) {
    await read()
    expect([(await waiting()).attempts, await nextAttempt()]).toEqual([5, asked])
  }
  await pass(3_500)
  await read()
  await settled()
  expect((await waiting()).attempts).toBe(5)
  await pass(101)
  await until(async () => (await waiting()).attempts === 6)
})

test('patches in a loop send waiting deliveries at most once in five seconds', async () => {
  const patch = () => stage.call('PATCH', `/${id}`, [])
  const planned = await nextAttempt()
  await patch()
  await until(async () => (await waiting()).attempts === 5)
  for (let time = 0; time < 10; time += 1) await patch()
  expect((await waiting()).attempts).toBe(5)
  await pass(5)
  await until(async () => (await waiting()).attempts === 6)
  expect(new Date(planned).getTime() - new Date(await nextAttempt()).getTime()).toBe(5_000)
})

test('neither a failed ping nor a read of a disabled or pull-only subscription sends waiting deliveries', async () => {
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
