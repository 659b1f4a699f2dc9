/** How little receivers that hang, fail or have a backlog delay others, on a real database and real HTTP. */
import { expect, test } from 'vitest'
import { limits } from '../../../src/config.ts'
import { forEachTest } from '../../support/for-tests.ts'
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

interface Crowd {
  /** The path of each request, in order. */
  requested: string[]
  /** Requests that have ended. */
  ended: number
  /** Answers the request that has waited the longest. */
  answerOne(): void
  /** Answers all requests, present and future. */
  answerAll(): void
}

/** Subscriptions of ONE whose receivers answer on the test's command. */
async function crowdOf(count: number): Promise<Crowd> {
  const held: (() => void)[] = []
  let isOpen = false
  const crowd: Crowd = {
    requested: [],
    ended: 0,
    answerOne: () => held.shift()!(),
    answerAll: () => {
      isOpen = true
      for (const answer of held.splice(0)) answer()
    },
  }
  const id = await stage.subscribe('/crowd0')
  await stage.sql(
    `insert into subscriptions (id, schema_id, level, third_party_id, post_url, on_events, start_position)
     select nextval('ids'), schema_id, level, third_party_id, replace(post_url, 'crowd0', 'crowd' || number), on_events, 0
     from subscriptions cross join generate_series(1, $2::int - 1) as number where id = $1`,
    [id, count],
  )
  for (let number = 0; number < count; number++) {
    const path = `/crowd${number}`
    stage.receiver.behave(path, (response) => {
      crowd.requested.push(path)
      const answer = () => void response.writeHead(204).end()
      if (isOpen) answer()
      else held.push(answer)
      response.on('close', () => {
        crowd.ended += 1
      })
    })
  }
  return crowd
}

/**
 * Publishes one event for all of them, and starts a dispatcher that has sent as many requests as one third
 * party may have at once.
 */
async function hanging(most: number, prepare?: () => Promise<unknown>): Promise<Crowd> {
  const crowd = await crowdOf(limits.deliveriesAtOnceMax + 4)
  await prepare?.()
  await stage.publish([documentEvent('first')])
  stage.dispatch()
  await until(() => crowd.requested.length >= most)
  return crowd
}

/** Ten events arrive, one after the other, while no request of the crowd is answered. */
async function expectPrompt(path: string, crowd: Crowd): Promise<void> {
  const names = numbered(10)
  for (const name of names) {
    await stage.publish(documents([name]))
    await until(() => namesOf(stage.receiver.accepted(path)).includes(name))
  }
  expect(namesOf(stage.receiver.accepted(path))).toEqual(names)
  expect(crowd.ended).toBe(0)
}

test('a third party whose receivers hang in all its slots does not delay another one', {
  timeout: 120_000,
}, async () => {
  const crowd = await hanging(112)
  await stage.subscribeOther('/living')
  await expectPrompt('/living', crowd)
  expect(crowd.requested.length).toBe(112)
  crowd.answerAll()
})

test('failing receivers that hang do not delay healthy ones of the same third party', {
  timeout: 120_000,
}, async () => {
  const crowd = await hanging(75, () => stage.sql('update subscriptions set failing_since = now()'))
  await stage.subscribe('/living')
  await expectPrompt('/living', crowd)
  expect(crowd.requested.length).toBe(75)
  crowd.answerAll()
})

test('each of many subscriptions gets its first turn before any gets its second', {
  timeout: 120_000,
}, async () => {
  const crowd = await crowdOf(160)
  // Two deliveries per subscription.
  await stage.publish(documents(numbered(150)))
  // No subscription counts as slow, however long the test takes.
  stage.dispatch({ timing: { timeoutMs: 120_000, slowMs: 119_000 } })
  // There are more subscriptions than slots: the others must wait.
  await until(() => crowd.requested.length === 112)
  for (let requests = 113; requests <= 160; requests++) {
    crowd.answerOne()
    await until(() => crowd.requested.length === requests)
  }
  expect(new Set(crowd.requested).size).toBe(160)
  crowd.answerAll()
  await until(() => crowd.requested.every((path) => stage.receiver.accepted(path).length >= 150))
  for (const path of crowd.requested) expect(namesOf(stage.receiver.accepted(path))).toEqual(numbered(150))
})

test('a notified event is found without searching thousands of subscriptions of the same third party in other schemas', {
  timeout: 120_000,
}, async () => {
  const template = await stage.subscribe('/elsewhere')
  await stage.sql(
    `insert into schemas (schema_id, name) select 1000 + number, '' from generate_series(1, 60) as number`,
  )
  await stage.sql(
    `insert into subscriptions (id, schema_id, level, third_party_id, post_url, on_events, start_position)
     select nextval('ids'), 1000 + number, level, third_party_id, post_url, on_events, 0
     from subscriptions cross join generate_series(1, 60) as number cross join generate_series(1, 100) where id = $1`,
    [template],
  )
  const id = await stage.subscribe('/one')
  let clockReads = 0
  const now = () => {
    clockReads += 1
    return Date.now()
  }
  stage.dispatch({ clock: { now, random: Math.random } })
  const names = numbered(6)
  const counts: number[] = []
  for (const name of names) {
    const before = clockReads
    await stage.publish(documents([name]))
    await until(() => namesOf(stage.receiver.accepted('/one')).includes(name))
    counts.push(clockReads - before)
    // Otherwise the same turn would deliver the next event as well.
    await until(async () => (await deliveriesOf(stage, id)).every(({ state }) => state === 'delivered'))
  }
  expect(namesOf(stage.receiver.accepted('/one'))).toEqual(names)
  // A search reads the clock three times or more, and a full round takes 61 searches: one round at the start,
  // for the first event, and perhaps one during all the others.
  expect(Math.max(...counts.slice(1))).toBeLessThan(100)
})
