import { expect, test } from 'vitest'
import { forEachTest } from '../support/for-tests.ts'
import { documentEvent, namesOf, setWebhookStage } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

const stage = forEachTest(setWebhookStage)

test('replayed deliveries and new events take turns', async () => {
  const id = await stage.subscribe('/one')
  const past = (name: string) => JSON.stringify([{ name: 'document', data: { name } }])
  await stage.sql(
    `insert into deliveries (schema_id, subscription_id, first_event, last_event, events, body, is_replay, next_attempt_at)
     select 100, $1, 1, 1, 1, convert_to(body, 'UTF8'), true, now() from unnest($2::text[]) as body`,
    [id, ['past 1', 'past 2', 'past 3', 'past 4'].map(past)],
  )
  await stage.publish(Array.from({ length: 150 }, (_, number) => documentEvent(`new ${number}`)))
  stage.dispatch()
  await until(() => stage.receiver.requests('/one').length === 6)
  expect(stage.receiver.requests('/one').map(({ events }) => namesOf(events)[0])).toEqual([
    ...['past 1', 'new 0', 'past 2', 'new 100', 'past 3', 'past 4'],
  ])
})
