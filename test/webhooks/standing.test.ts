/** How late deliveries are, on a real database. */
import { expect, type TestContext, test } from 'vitest'
import { createPool, whileDelivering } from '../../src/db/pool.ts'
import { readDeliveryHealth, readLateness } from '../../src/webhooks/lateness.sql.ts'
import { numberInParts } from '../../src/webhooks/sequence/numbering.sql.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { documentEvent, stageOf } from '../support/stages/webhooks.ts'

async function standingStage(context: TestContext) {
  const stage = await stageOf(context)
  const pool = createPool(stage.serviceUrl, { max: 1, applicationName: 'grandlivre test' })
  context.onTestFinished(() => pool.end())
  const standing = () => whileDelivering(pool, readDeliveryHealth)
  const lateness = (id: string) => whileDelivering(pool, (client) => readLateness(client, id))
  return { stage, pool, standing, lateness }
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

test('events are late also when a reader has asked for their numbers, and each subscription for itself', async (context) => {
  const { stage, pool, standing, lateness } = await standingStage(context)
  const id = await stage.subscribe('/all')
  const other = await stage.subscribe('/other')
  await stage.publish([documentEvent('a'), documentEvent('b')])
  await stage.sql(`update events set created_at = now() - interval '1 hour'`)
  await numberInParts((run) => whileDelivering(pool, run), id)
  await stage.sql('delete from subscription_positions where subscription_id <> $1', [id])
  await stage.sql('update subscriptions set start_position = $2 where id = $1', [other, 1_000_000])
  expect(await lateness(other)).toBeUndefined()
  expect(await lateness(id)).toBeGreaterThan(3_500)
  expect((await standing()).oldestSeconds).toBeGreaterThan(3_500)
  await stage.sql('update subscriptions set collected = numbered where id = $1', [id])
  expect(await lateness(id)).toBeUndefined()
  expect((await standing()).oldestSeconds).toBe(0)
})

test('a subscription without a token is suspended, and neither late nor failing', async (context) => {
  const { stage, standing, lateness } = await standingStage(context)
  const firms = { level: 'firm', firmId: '110' } as const
  const id = await stage.subscribe('/firm', firms)
  await stage.subscribe('/failing', firms)
  await stage.sql(`update subscriptions set failing_since = now() where id <> $1`, [id])
  await stage.publish([documentEvent('a')])
  await stage.sql(`update events set created_at = now() - interval '1 hour'`)
  const none = { oldestSeconds: 0, oldestFailingSeconds: 0 }
  expect(await standing()).toEqual({ ...none, enabled: 0, failing: 0, disabled: 0, suspended: 2 })
  expect(await lateness(id)).toBeUndefined()
  await stage.staff.token('ONE', 'firm', folders.first)
  expect(await standing()).toMatchObject({ enabled: 1, failing: 1, suspended: 0 })
  expect(await lateness(id)).toBeGreaterThan(3_500)
})
