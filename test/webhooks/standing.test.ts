/** How late deliveries are, on a real database. */
import { expect, test } from 'vitest'
import { createPool, whileDelivering } from '../../src/db/pool.ts'
import { readDeliveryHealth, readLateness } from '../../src/webhooks/lateness.sql.ts'
import { numberInParts } from '../../src/webhooks/sequence/numbering.sql.ts'
import { forEachTest } from '../support/for-tests.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { documentEvent, setWebhookStage } from '../support/stages/webhooks.ts'

const stage = forEachTest(setWebhookStage)
const pool = forEachTest(() => createPool(stage.serviceUrl, { max: 1, applicationName: 'grandlivre test' }))
const health = () => whileDelivering(pool, readDeliveryHealth)
const lateness = (id: string) => whileDelivering(pool, (client) => readLateness(client, id))

test('events that no dispatcher has collected count as late for the subscriptions that receive them', async () => {
  await stage.subscribe('/folder', { folderIds: ['27002'] })
  const all = await stage.subscribe('/all')
  const none = { oldestSeconds: 0, oldestFailingSeconds: 0 }
  expect(await health()).toMatchObject(none)
  await stage.publish([documentEvent('a')])
  await stage.sql(`update events set created_at = now() - interval '1 hour'`)
  expect((await health()).oldestSeconds).toBeGreaterThan(3_500)
  await stage.sql(`update subscriptions set failing_since = now() where id = $1`, [all])
  const failing = await health()
  expect(failing.oldestSeconds).toBe(0)
  expect(failing.oldestFailingSeconds).toBeGreaterThan(3_500)
  await stage.sql(
    `update subscriptions set failing_since = null, last_success_at = now() - interval '1 minute' where id = $1`,
    [all],
  )
  const { oldestSeconds } = await health()
  expect(oldestSeconds).toBeGreaterThan(50)
  expect(oldestSeconds).toBeLessThan(1_000)
  // The other subscription selects no such event.
  await stage.sql('delete from subscriptions where id = $1', [all])
  expect(await health()).toMatchObject(none)
})

test('events count as late for each subscription separately, even after a reader has asked for their numbers', async () => {
  const id = await stage.subscribe('/all')
  const other = await stage.subscribe('/other')
  await stage.publish([documentEvent('a'), documentEvent('b')])
  await stage.sql(`update events set created_at = now() - interval '1 hour'`)
  await numberInParts((run) => whileDelivering(pool, run), id)
  await stage.sql('delete from subscription_positions where subscription_id <> $1', [id])
  await stage.sql('update subscriptions set start_position = $2 where id = $1', [other, 1_000_000])
  expect(await lateness(other)).toBeUndefined()
  expect(await lateness(id)).toBeGreaterThan(3_500)
  expect((await health()).oldestSeconds).toBeGreaterThan(3_500)
  await stage.sql('update subscriptions set collected = numbered where id = $1', [id])
  expect(await lateness(id)).toBeUndefined()
  expect((await health()).oldestSeconds).toBe(0)
})

test('a subscription without a token counts as suspended, not as late or failing', async () => {
  const firms = { level: 'firm', firmId: '110' } as const
  const id = await stage.subscribe('/firm', firms)
  await stage.subscribe('/failing', firms)
  await stage.sql(`update subscriptions set failing_since = now() where id <> $1`, [id])
  await stage.publish([documentEvent('a')])
  await stage.sql(`update events set created_at = now() - interval '1 hour'`)
  const none = { oldestSeconds: 0, oldestFailingSeconds: 0 }
  expect(await health()).toEqual({ ...none, enabled: 0, failing: 0, disabled: 0, suspended: 2 })
  expect(await lateness(id)).toBeUndefined()
  await stage.staff.token('ONE', 'firm', folders.first)
  expect(await health()).toMatchObject({ enabled: 1, failing: 1, suspended: 0 })
  expect(await lateness(id)).toBeGreaterThan(3_500)
})
