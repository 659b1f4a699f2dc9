/** The gauges of queue and deliveries, on a real database. */
import { expect, type TestContext, test } from 'vitest'
import { recordHistory } from '../../../src/console/history.ts'
import { exportQueue, queueSchema, readQueueStanding } from '../../../src/db/migrations/queue-schema.ts'
import { createPool, inTransaction, whileDelivering } from '../../../src/db/pool.ts'
import { RunningStreams } from '../../../src/http/stream/running-streams.ts'
import { RunningAttempts } from '../../../src/jobs/running-attempts.ts'
import { boundStatements } from '../../../src/start/gauges/standing.sql.ts'
import { observeStanding } from '../../../src/start/gauges/standing-gauges.ts'
import type { Observation } from '../../../src/telemetry/telemetry.ts'
import { documentEvent, stageOf } from '../../support/stages/webhooks.ts'

async function standingStage(context: TestContext) {
  const stage = await stageOf(context)
  const pool = createPool(stage.serviceUrl, { max: 1, applicationName: 'grandlivre test' })
  context.onTestFinished(() => pool.end())
  return { stage, pool }
}

test('the chart of the console shows the values of the gauges', async (context) => {
  const { stage, pool } = await standingStage(context)
  const [working, failing] = [await stage.subscribe('/working'), await stage.subscribe('/failing')]
  await stage.publish([documentEvent('a')])
  await stage.sql(`update events set created_at = now() - interval '1 day'`)
  await stage.sql(`update subscriptions set last_success_at = now() - interval '1 hour' where id = $1`, [
    working,
  ])
  await stage.sql('update subscriptions set failing_since = now() where id = $1', [failing])
  await stage.sql(
    `insert into ${queueSchema}.job (name, start_after) values ($1, now() - interval '2 hours')`,
    [exportQueue],
  )
  const gauges = new Map<string, () => Promise<Observation[]> | Observation[]>()
  const standing = observeStanding({ observe: (gauge, read) => void gauges.set(gauge, read) }, pool)
  const parts = { streams: new RunningStreams(), attempts: new RunningAttempts(), standing }
  const history = recordHistory(parts)
  context.onTestFinished(() => history.close())
  await history.sample()
  const late = await gauges.get('grandlivre.delivery.oldest_undelivered')!()
  const byState = Object.fromEntries(late.map(({ labels, value }) => [labels!['state'], value]))
  expect(Math.floor(byState['enabled']! / 3_600)).toBe(1)
  expect(Math.floor(byState['failing']! / 3_600)).toBe(24)
  expect(history.values('delivery').at(-1)).toBe(byState['enabled'])
  const [age] = await gauges.get('grandlivre.export.queue.age')!()
  expect(Math.floor(age!.value / 3_600)).toBe(2)
  expect(history.values('queuedExport').at(-1)).toBe(age!.value)
})

test('an export keeps its age while claims of it fail', async (context) => {
  const { stage, pool } = await standingStage(context)
  const waiting = JSON.stringify({ since: new Date(Date.now() - 3_600_000).toISOString() })
  // Paused until its next claim; the other one is to be retried later.
  await stage.sql(
    `insert into ${queueSchema}.job (name, start_after, data)
     values ($1, now() + interval '2 seconds', $2), ($1, now() + interval '8 seconds', '{}')`,
    [exportQueue, waiting],
  )
  const standing = await inTransaction(pool, readQueueStanding)
  expect(standing.length).toBe(2)
  expect(Math.floor(standing.ageSeconds / 60)).toBe(60)
  await stage.sql(`delete from ${queueSchema}.job where data ? 'since'`)
  expect((await inTransaction(pool, readQueueStanding)).ageSeconds).toBe(0)
})

test('a statement for a gauge is ended after a second and returns its connection', async (context) => {
  const { pool } = await standingStage(context)
  const slow = whileDelivering(pool, async (client) => {
    await boundStatements(client)
    await client.query('select pg_sleep(60)')
  })
  await expect(slow).rejects.toThrow('statement timeout')
  expect(pool.idleCount).toBe(1)
})
