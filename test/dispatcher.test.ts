/** Deliveries from the event to the subscriber, through a dispatcher on a real database and real HTTP. */
import { expect, type TestContext, test } from 'vitest'
import { until } from './support/service.ts'
import { documentEvent, namesOf, setWebhookStage, type WebhookStage } from './support/webhooks.ts'

async function stageOf({ onTestFinished }: TestContext): Promise<WebhookStage> {
  const stage = await setWebhookStage()
  onTestFinished(() => stage.close())
  return stage
}

const numbered = (count: number) => Array.from({ length: count }, (_, number) => `n${number}`)

test('events reach a subscriber in their order, a hundred to a request at the most', async (context) => {
  const stage = await stageOf(context)
  await stage.subscribe('/one')
  stage.dispatch()
  await stage.publish(numbered(250).map((name) => documentEvent(name)))
  await until(() => stage.receiver.accepted('/one').length >= 250)
  expect(namesOf(stage.receiver.accepted('/one'))).toEqual(numbered(250))
  expect(stage.receiver.requests('/one').map(({ events }) => events.length)).toEqual([100, 100, 50])
  expect(stage.receiver.forged).toEqual([])
})
