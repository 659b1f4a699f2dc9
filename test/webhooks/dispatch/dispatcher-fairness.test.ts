/** What receivers that hang, fail or have much before them cost others, on a real database and real HTTP. */
import { expect, type TestContext, test } from 'vitest'
import { limits } from '../../../src/config.ts'
import {
  deliveriesOf,
  documentEvent,
  documents,
  namesOf,
  numbered,
  stageOf,
  type WebhookStage,
} from '../../support/stages/webhooks.ts'
import { until } from '../../support/until.ts'

interface Crowd {
  /** Of each request, in order. */
  asked: string[]
  /** Requests that are over. */
  ended: number
  /** Answers the request that has waited longest. */
  answerOne(): void
  /** Answers all, those to come as well. */
  letGo(): void
}

/** Subscriptions of ONE, whose receivers answer when the test says so. */
async function crowdOf(stage: WebhookStage, count: number): Promise<Crowd> {
  const held: (() => void)[] = []
  let isOpen = false
  const crowd: Crowd = {
    asked: [],
    ended: 0,
    answerOne: () => held.shift()!(),
    letGo: () => {
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
      crowd.asked.push(path)
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

/** One event for all of them, and a dispatcher that has begun as many requests as one third party may have at once. */
async function hanging(
  context: TestContext,
  most: number,
  prepare?: (stage: WebhookStage) => Promise<unknown>,
) {
  const stage = await stageOf(context)
  const crowd = await crowdOf(stage, limits.deliveriesAtOnceMax + 4)
  await prepare?.(stage)
  await stage.publish([documentEvent('first')])
  stage.dispatch()
  await until(() => crowd.asked.length >= most)
  return { stage, crowd }
}

/** Ten events, one after the other, while none of the crowd is answered. */
async function expectPrompt(stage: WebhookStage, path: string, crowd: Crowd): Promise<void> {
  const names = numbered(10)
  for (const name of names) {
    await stage.publish(documents([name]))
    await until(() => namesOf(stage.receiver.accepted(path)).includes(name))
  }
  expect(namesOf(stage.receiver.accepted(path))).toEqual(names)
  expect(crowd.ended).toBe(0)
}

test('while all slots that one third party may take hang, another one is sent all that happens', {
  timeout: 120_000,
}, async (context) => {
  const { stage, crowd } = await hanging(context, 112)
  await stage.subscribeOther('/living')
  await expectPrompt(stage, '/living', crowd)
  expect(crowd.asked.length).toBe(112)
  crowd.letGo()
})

test('while those that fail hang, the healthy ones of the same third party are sent all that happens', {
  timeout: 120_000,
}, async (context) => {
  const { stage, crowd } = await hanging(context, 75, (stage) =>
    stage.sql('update subscriptions set failing_since = now()'),
  )
  await stage.subscribe('/living')
  await expectPrompt(stage, '/living', crowd)
  expect(crowd.asked.length).toBe(75)
  crowd.letGo()
})

test('every subscription of many has its turn before another has its second', {
  timeout: 120_000,
}, async (context) => {
  const stage = await stageOf(context)
  const crowd = await crowdOf(stage, 300)
  // Two deliveries for each.
  await stage.publish(documents(numbered(150)))
  // However long the test takes, none of them counts as slow.
  stage.dispatch({ timing: { timeoutMs: 120_000, slowMs: 119_000 } })
  // More than one search finds: the others wait.
  await until(() => crowd.asked.length === 112)
  for (let asked = 113; asked <= 300; asked++) {
    crowd.answerOne()
    await until(() => crowd.asked.length === asked, 2)
  }
  expect(new Set(crowd.asked).size).toBe(300)
  crowd.letGo()
  await until(() => crowd.asked.every((path) => stage.receiver.accepted(path).length >= 150))
  for (const path of crowd.asked) expect(namesOf(stage.receiver.accepted(path))).toEqual(numbered(150))
})

test('a notified event is found without a search through thousands of subscriptions of the same third party elsewhere', {
  timeout: 120_000,
}, async (context) => {
  const stage = await stageOf(context)
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
  let asked = 0
  const now = () => {
    asked += 1
    return Date.now()
  }
  stage.dispatch({ clock: { now, random: Math.random } })
  const names = numbered(6)
  const counts: number[] = []
  for (const name of names) {
    const before = asked
    await stage.publish(documents([name]))
    await until(() => namesOf(stage.receiver.accepted('/one')).includes(name), 2)
    counts.push(asked - before)
    // Or the same turn would go on with the next one.
    await until(async () => (await deliveriesOf(stage, id)).every(({ state }) => state === 'delivered'), 2)
  }
  expect(namesOf(stage.receiver.accepted('/one'))).toEqual(names)
  // A look asks for the time three times or more, and it takes 61 to go through everything: at the start for the first
  // event, and for whatever there may be during all the others.
  expect(Math.max(...counts.slice(1))).toBeLessThan(100)
})
