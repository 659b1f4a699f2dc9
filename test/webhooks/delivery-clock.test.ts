/**
 * The life of a failing subscription on a clock that the test moves: retries, failure, disabling, enabling.
 */
import { expect, test } from 'vitest'
import { forEachTest } from '../support/for-tests.ts'
import { answerWith } from '../support/receiver.ts'
import { documentEvent, namesOf, sequencesOf, setWebhookStage } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

const stage = forEachTest(setWebhookStage)

const second = 1_000
const day = 86_400_000

interface Scenario {
  subscriptionId: string
  clock: { now: number }
  /** Makes the dispatcher search now. Without that it searches every two seconds. */
  search(): Promise<void>
  /** The latest delivery. */
  // biome-ignore lint/suspicious/noExplicitAny: a row
  latest(): Promise<any>
  /** Waits until the latest delivery has had this many attempts. */
  tried(attempts: number): Promise<void>
}

async function startScenario(): Promise<Scenario> {
  const subscriptionId = await stage.subscribe('/one', { folderIds: ['111'] })
  await stage.subscribe('/tick', { folderIds: ['112'] })
  // Ahead of the clock of this machine, by which staff make replays due.
  const clock = { now: Math.floor(Date.now() / 1_000) * 1_000 }
  stage.dispatch({ clock: { now: () => clock.now, random: () => 0 } })
  const latest = async () => {
    const [row] = await stage.sql(
      `select d.state, d.attempts, (extract(epoch from d.next_attempt_at) * 1000)::float8 as next, s.enabled
       from deliveries d join subscriptions s on s.id = d.subscription_id
       where s.id = $1 order by d.id desc limit 1`,
      [subscriptionId],
    )
    return row
  }
  return {
    subscriptionId,
    clock,
    search: async () => void (await stage.sql(`select pg_notify('grandlivre_events', '100')`)),
    latest,
    tried: (attempts) => until(async () => (await latest())?.attempts === attempts),
  }
}

/**
 * Moves the clock to each retry until the delivery has ended, or its subscription is disabled.
 * @returns the delay before each retry, in seconds
 */
async function retryToTheEnd({ clock, search, latest, tried }: Scenario): Promise<number[]> {
  const delays: number[] = []
  const ticks = stage.receiver.accepted('/tick').length
  for (let attempts = 1; ; attempts++) {
    await tried(attempts)
    const { state, next, enabled } = await latest()
    if (state !== 'pending' || !enabled) return delays
    delays.push((next - clock.now) / second)
    const before = stage.receiver.requests('/one').length
    // One millisecond early, nothing is sent. The event that the second subscriber gets at once proves that the
    // dispatcher has searched.
    clock.now = next - 1
    await search()
    await stage.publish([documentEvent('tick', '112')])
    await until(async () => stage.receiver.accepted('/tick').length === ticks + attempts)
    expect(stage.receiver.requests('/one').length).toBe(before)
    clock.now = next
    await search()
  }
}

test('a delivery is tried twelve times over three days, then kept as failed, and the next one starts', async () => {
  const scenario = await startScenario()
  const { clock } = scenario
  stage.receiver.behave('/one', answerWith(500))
  const start = clock.now
  await stage.publish([documentEvent('a', '111')])
  const delays = await retryToTheEnd(scenario)
  expect(delays).toEqual([5, 30, 120, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 86_400])
  expect(clock.now - start).toBe(delays.reduce((sum, delay) => sum + delay, 0) * second)
  expect(await scenario.latest()).toMatchObject({ state: 'failed', attempts: 12 })
  const requests = stage.receiver.requests('/one')
  expect(requests.length).toBe(12)
  expect(new Set(requests.map(({ body }) => String(body))).size).toBe(1)
  // Each attempt is signed with its own date.
  expect(new Set(requests.map(({ headers }) => headers.date)).size).toBe(12)
  expect(stage.receiver.forged).toEqual([])
  const attempts = await stage.sql(
    `select a.number, a.status from delivery_attempts a join deliveries d on d.id = a.delivery_id
     where d.subscription_id = $1 order by a.number`,
    [scenario.subscriptionId],
  )
  expect(attempts).toEqual(Array.from({ length: 12 }, (_, index) => ({ number: index + 1, status: 500 })))
  // Three days of failure do not disable a subscription, five do: the next delivery is sent and succeeds.
  stage.receiver.behave('/one', answerWith(204))
  await stage.publish([documentEvent('b', '111')])
  await until(() => stage.receiver.accepted('/one').length === 1)
  expect(namesOf(stage.receiver.accepted('/one'))).toEqual(['b'])
  await until(async () => (await scenario.latest()).state === 'delivered')
  expect(
    await stage.sql('select enabled, failing_since from subscriptions where id = $1', [
      scenario.subscriptionId,
    ]),
  ).toEqual([{ enabled: true, failing_since: null }])
})

test('five days without success disable a subscription; once enabled, it goes on where it stopped', async () => {
  const scenario = await startScenario()
  const { clock, subscriptionId } = scenario
  const start = clock.now
  stage.receiver.behave('/one', answerWith(500))
  await stage.publish([documentEvent('a', '111')])
  await retryToTheEnd(scenario)
  await stage.publish([documentEvent('b', '111')])
  await retryToTheEnd(scenario)
  // The subscription is disabled after exactly five days, not with the retry that was due a day later.
  expect(clock.now - start).toBe(5 * day)
  await until(async () => (await stage.sql('select from subscriptions where not enabled')).length === 1)
  const [disabled] = await stage.sql(
    `select disabled_reason, (extract(epoch from disabled_at) * 1000)::float8 as at
     from subscriptions where id = $1`,
    [subscriptionId],
  )
  expect(disabled).toEqual({
    disabled_reason: 'no delivery has succeeded for five days',
    at: start + 5 * day,
  })
  const sent = stage.receiver.requests('/one').length
  stage.receiver.behave('/one', answerWith(204))
  await stage.publish([documentEvent('while disabled', '111')])
  // A second subscriber proves that the dispatcher has searched past this event.
  const ticks = stage.receiver.accepted('/tick').length
  await stage.publish([documentEvent('tick', '112')])
  await until(() => stage.receiver.accepted('/tick').length > ticks)
  expect(stage.receiver.requests('/one').length).toBe(sent)
  await stage.enable(subscriptionId)
  await stage.publish([documentEvent('c', '111')])
  await until(() => stage.receiver.accepted('/one').length === 3)
  expect(namesOf(stage.receiver.accepted('/one'))).toEqual(['b', 'while disabled', 'c'])
  // The delivery that had failed before can be replayed.
  await stage.replayFailed(subscriptionId)
  await until(() => stage.receiver.accepted('/one').length === 4)
  expect(namesOf(stage.receiver.accepted('/one')).at(-1)).toBe('a')
  expect(sequencesOf(stage.receiver.requests('/one').slice(sent))).toEqual([2, 3, 4, 1])
})

test('Retry-After postpones the next attempt, and a success restarts the five days', async () => {
  const { clock, search, latest, tried, subscriptionId } = await startScenario()
  stage.receiver.behave('/one', answerWith(503, { 'retry-after': '7200' }))
  await stage.publish([documentEvent('a', '111')])
  await tried(1)
  expect((await latest()).next - clock.now).toBe(7_200 * second)
  stage.receiver.behave('/one', answerWith(200))
  clock.now += 7_200 * second
  await search()
  await until(async () => (await latest()).state === 'delivered')
  const failingSince = async () => {
    const [row] = await stage.sql(
      'select (extract(epoch from failing_since) * 1000)::float8 as at from subscriptions where id = $1',
      [subscriptionId],
    )
    return row.at
  }
  expect(await failingSince()).toBe(null)
  clock.now += 4.9 * day
  stage.receiver.behave('/one', answerWith(500))
  await stage.publish([documentEvent('b', '111')])
  await tried(1)
  expect(await failingSince()).toBe(clock.now)
})
