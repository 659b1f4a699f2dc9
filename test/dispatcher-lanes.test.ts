import { expect, test } from 'vitest'
import { limits } from '../src/config.ts'
import { until } from './support/service.ts'
import { documentEvent, setWebhookStage } from './support/webhooks.ts'

test('however many receivers are known to be dead, places are left to the others', {
  timeout: 120_000,
}, async ({ onTestFinished }) => {
  const stage = await setWebhookStage()
  onTestFinished(() => stage.close())
  const dead = Array.from({ length: limits.deliveriesAtOnceMax + 4 }, (_, number) => `/dead${number}`)
  for (const path of dead) {
    await stage.subscribe(path)
    stage.receiver.behave(path, () => {})
  }
  await stage.sql('update subscriptions set failing_since = now()')
  await stage.publish([documentEvent('a')])
  stage.dispatch()
  const asked = () => dead.filter((path) => stage.receiver.requests(path).length > 0).length
  await until(() => asked() >= limits.slowDeliveriesAtOnceMax)
  await stage.subscribe('/living')
  await stage.publish([documentEvent('b')])
  await until(() => stage.receiver.accepted('/living').length === 1)
  const places = asked()
  // Each dead one whose ten seconds are over has given its place to another.
  const [{ over }] = await stage.sql('select count(*)::int as over from delivery_attempts')
  expect(places).toBeLessThanOrEqual(limits.slowDeliveriesAtOnceMax + over)
})
