/** The timeout of ten seconds, as in production. Shorter ones are in dispatcher-requests.test.ts. */
import { expect, test } from 'vitest'
import { deliveriesOf, documents, stageOf, standingClock } from '../../support/stages/webhooks.ts'
import { until } from '../../support/until.ts'

test('a receiver that is silent for ten seconds times out', async (context) => {
  const stage = await stageOf(context)
  const id = await stage.subscribe('/silent')
  stage.receiver.behave('/silent', () => {})
  stage.dispatch({ clock: standingClock() })
  await stage.publish(documents(['a']))
  await until(async () => (await deliveriesOf(stage, id))[0]?.attempts === 1)
  const [attempt] = await stage.sql('select status, error, latency_ms from delivery_attempts')
  expect(attempt).toMatchObject({ status: null, error: 'no response within 10 seconds' })
  expect(attempt.latency_ms).toBeGreaterThanOrEqual(9_900)
})
