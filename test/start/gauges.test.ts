import { afterEach, expect, type TestContext, test, vi } from 'vitest'
import { type Config, readConfig } from '../../src/config.ts'
import { recordHistory } from '../../src/console/history.ts'
import { exportQueue, queueSchema, readQueueStanding } from '../../src/db/migrations/queue-schema.ts'
import { createPool, inTransaction, whileDelivering } from '../../src/db/pool.ts'
import { AppError } from '../../src/errors.ts'
import { type Need, Readiness } from '../../src/http/readiness.ts'
import { RunningStreams } from '../../src/http/stream/running-streams.ts'
import { RunningAttempts } from '../../src/jobs/running-attempts.ts'
import { boundStatements } from '../../src/start/gauges.sql.ts'
import { observeProcess, observeStanding } from '../../src/start/gauges.ts'
import type { GaugeValues, Observation } from '../../src/telemetry/telemetry.ts'
import { forTests } from '../support/for-tests.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { documentEvent, stageOf } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

const database = forTests(createTestDatabase)
const pool = forTests(() => createPool(database.serviceUrl, { max: 1, applicationName: 'grandlivre test' }))

afterEach(() => {
  vi.useRealTimers()
})

type Gauges = Record<string, () => GaugeValues | Promise<GaugeValues>>

/** Telemetry that only keeps the function that reads each gauge. */
const keptIn = (read: Gauges) => ({
  observe: (gauge: string, reader: Gauges[string]) => void Object.assign(read, { [gauge]: reader }),
})

/** @returns a function for each gauge, which reads it */
function gauges(needs: Need[], config: Partial<Config> = {}): Gauges {
  const read: Gauges = {}
  const services = {
    config: { ...readConfig({}), ...config },
    database: pool,
    readiness: new Readiness(needs, async () => {}, 0),
    log: () => {},
  }
  observeProcess(services, { waiting: 7, stalledSeconds: 2 }, keptIn(read), 1_000)
  return read
}

const met = async () => {}
const unmet = async () => {
  throw new Error('It is not there')
}

async function readyIn(read: Gauges): Promise<Record<string, number>> {
  const observed = (await read['grandlivre.ready']!()) as Observation[]
  return Object.fromEntries(observed.map(({ labels, value }) => [labels!['need'], value]))
}

test('each gauge of a need is 1 or 0, and without a pooler there is no gauge for it', async () => {
  const read = gauges([
    { name: 'the database', label: 'database', check: met },
    { name: 'the store of files', label: 'store', check: unmet },
  ])
  expect(await readyIn(read)).toEqual({ database: 1, store: 0, connections: 1, requests: 1 })
  expect(await read['grandlivre.pooler.ready']!()).toEqual([])
  expect(await read['grandlivre.audit.waiting']!()).toBe(7)
  expect(await read['grandlivre.audit.stalled']!()).toBe(2)
})

test('with a pooler, the direct address shows whether the database answers, and the pooled address whether the pooler does', async () => {
  const read = gauges(
    [
      { name: 'the database of DATABASE_URL', label: 'database', check: unmet },
      { name: 'the database of DIRECT_DATABASE_URL', label: 'direct', check: met },
    ],
    { directDatabaseUrl: 'postgres://direct' },
  )
  expect(await readyIn(read)).toEqual({ database: 1, connections: 1, requests: 1 })
  expect(await read['grandlivre.pooler.ready']!()).toEqual([{ value: 0 }])
})

test('a database without a free connection is reported as short of connections, not as down', async () => {
  const missing = 'a free connection to the database'
  const check = async () => {
    throw new AppError('ERR-UNAVAILABLE', { missing })
  }
  const read = gauges([{ name: 'the database', label: 'database', check }])
  expect(await readyIn(read)).toEqual({ database: 1, connections: 0, requests: 1 })
})

test('while a check waits for its answer, the previous result is shown', async () => {
  const { promise: silent, reject } = Promise.withResolvers<void>()
  let check = met
  const read = gauges([{ name: 'the store of files', label: 'store', check: () => check() }])
  expect(await readyIn(read)).toMatchObject({ store: 1 })
  check = () => silent
  expect(await readyIn(read)).toMatchObject({ store: 1 })
  reject(new Error('It is silent'))
  await until(async () => (await readyIn(read))['store'] === 0)
})

test('a clock ahead of the database clock has a positive offset', async () => {
  const read = gauges([])
  const offset = () => read['grandlivre.clock.offset']!()
  // Precise to five seconds.
  expect(await offset()).toBeCloseTo(0, -1)
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 100_000 })
  expect(await offset()).toBeCloseTo(100, -1)
})

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
  const read: Gauges = {}
  const standing = observeStanding(keptIn(read), pool)
  const parts = { streams: new RunningStreams(), attempts: new RunningAttempts(), standing }
  const history = recordHistory(parts)
  context.onTestFinished(() => history.close())
  await history.sample()
  const late = (await read['grandlivre.delivery.oldest_undelivered']!()) as Observation[]
  const byState = Object.fromEntries(late.map(({ labels, value }) => [labels!['state'], value]))
  expect(Math.floor(byState['enabled']! / 3_600)).toBe(1)
  expect(Math.floor(byState['failing']! / 3_600)).toBe(24)
  expect(history.values('delivery').at(-1)).toBe(byState['enabled'])
  const age = (await read['grandlivre.export.queue.age']!()) as number
  expect(Math.floor(age / 3_600)).toBe(2)
  expect(history.values('queuedExport').at(-1)).toBe(age)
})

test('an export keeps its age while claims of it fail', async (context) => {
  const { stage, pool } = await standingStage(context)
  const waiting = JSON.stringify({ since: new Date(Date.now() - 3_600_000).toISOString() })
  // The first export pauses until its next claim; the second is to be retried later.
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
