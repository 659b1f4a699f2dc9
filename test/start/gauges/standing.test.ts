/** How late deliveries are, on a real database. */
import { expect, type TestContext, test } from 'vitest'
import { createPool, whileDelivering } from '../../../src/db/pool.ts'
import { boundStatements, readDeliveryStanding } from '../../../src/start/gauges/standing.sql.ts'
import { documentEvent, stageOf } from '../../support/stages/webhooks.ts'

async function standingStage(context: TestContext) {
  const stage = await stageOf(context)
  const pool = createPool(stage.serviceUrl, { max: 1, applicationName: 'grandlivre test' })
  context.onTestFinished(() => pool.end())
  const standing = () => whileDelivering(pool, readDeliveryStanding)
  return { stage, pool, standing }
}

test('events that no dispatcher has collected are late, for those that receive them', async (context) => {
  const { stage, standing } = await standingStage(context)
  await stage.subscribe('/folder', { folderIds: ['27002'] })
  const all = await stage.subscribe('/all')
  const none = { oldestSeconds: 0, oldestFailingSeconds: 0 }
  expect(await standing()).toMatchObject(none)
  await stage.publish([documentEvent('a')])
  await stage.sql(`update events set created_at = now() - interval '1 hour'`)
  expect((await standing()).oldestSeconds).toBeGreaterThan(3_500)
  await stage.sql(`update subscriptions set failing_since = now() where id = $1`, [all])
  const failing = await standing()
  expect(failing.oldestSeconds).toBe(0)
  expect(failing.oldestFailingSeconds).toBeGreaterThan(3_500)
  await stage.sql(
    `update subscriptions set failing_since = null, last_success_at = now() - interval '1 minute' where id = $1`,
    [all],
  )
  const { oldestSeconds } = await standing()
  expect(oldestSeconds).toBeGreaterThan(50)
  expect(oldestSeconds).toBeLessThan(1_000)
  // The other one selects no such event.
  await stage.sql('delete from subscriptions where id = $1', [all])
  expect(await standing()).toMatchObject(none)
})

test('a statement for a gauge ends after a second, and gives its connection back', async (context) => {
  const { pool } = await standingStage(context)
  const slow = whileDelivering(pool, async (client) => {
    await boundStatements(client)
    await client.query('select pg_sleep(60)')
  })
  await expect(slow).rejects.toThrow('statement timeout')
  expect(pool.idleCount).toBe(1)
})
