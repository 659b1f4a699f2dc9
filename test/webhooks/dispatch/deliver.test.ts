import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createPool, whileDelivering } from '../../../src/db/pool.ts'
import { noTelemetry } from '../../../src/telemetry/telemetry.ts'
import { defaultTiming } from '../../../src/timing.ts'
import { deliver } from '../../../src/webhooks/dispatch/deliver.ts'
import { guardedAgent } from '../../../src/webhooks/target.ts'
import { forEachTest } from '../../support/for-tests.ts'
import { testMasterKey } from '../../support/service.ts'
import { documentEvent, setWebhookStage } from '../../support/stages/webhooks.ts'

const stage = forEachTest(setWebhookStage)
const database = forEachTest(() =>
  createPool(stage.serviceUrl, { max: 1, applicationName: 'grandlivre test' }),
)

test('a receiver whose response starts at once but ends late counts as slow and successful', async ({
  onTestFinished,
}) => {
  const rules = { allowInsecure: true }
  const agent = guardedAgent(rules)
  onTestFinished(() => agent.destroy())
  const subscriptionId = await stage.subscribe('/late')
  const timing = { ...defaultTiming.deliveries, slowMs: 200 }
  const lateMs = timing.slowMs + 200
  stage.receiver.behave('/late', async (response) => {
    response.writeHead(200).write('thank')
    await delay(lateMs)
    response.end(' you')
  })
  await stage.publish([documentEvent('a')])
  const took: number[] = []
  await deliver(
    {
      agent,
      rules,
      timing,
      telemetry: noTelemetry,
      masterKeys: [testMasterKey],
      log: () => {},
      now: Date.now,
      random: Math.random,
    },
    {
      subscriptionId,
      transact: (run) => whileDelivering(database, run),
      mayContinue: () => true,
      onAttempt: (tookMs) => took.push(tookMs),
      stopped: new AbortController().signal,
    },
  )
  expect(took.map((ms) => ms > timing.slowMs)).toEqual([true])
  const attempts = await stage.sql(
    `select status, convert_from(answer, 'UTF8') as answer from delivery_attempts`,
  )
  expect(attempts).toEqual([{ status: 200, answer: 'thank you' }])
})
