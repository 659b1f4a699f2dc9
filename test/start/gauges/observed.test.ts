import { afterEach, expect, test, vi } from 'vitest'
import { type Config, readConfig } from '../../../src/config.ts'
import { createPool } from '../../../src/db/pool.ts'
import { AppError } from '../../../src/errors.ts'
import { type Need, Readiness } from '../../../src/http/readiness.ts'
import { observe } from '../../../src/start/gauges/observed.ts'
import type { Observation } from '../../../src/telemetry/telemetry.ts'
import { forTests } from '../../support/for-tests.ts'
import { createTestDatabase } from '../../support/servers/database.ts'
import { until } from '../../support/until.ts'

const database = forTests(createTestDatabase)
const pool = forTests(() => createPool(database.serviceUrl, { max: 1, applicationName: 'grandlivre test' }))

afterEach(() => {
  vi.useRealTimers()
})

type Gauges = Record<string, () => Observation[] | Promise<Observation[]>>

/** @returns a function for each gauge, which reads it */
function gauges(needs: Need[], config: Partial<Config> = {}): Gauges {
  const read: Gauges = {}
  const services = {
    config: { ...readConfig({}), ...config },
    database: pool,
    readiness: new Readiness(needs, async () => {}, 0),
    epoch: { latest: async () => ({ number: 48, began: '2026-01-31T08:00:00.000Z', ageSeconds: 12 }) },
    log: () => {},
  }
  const telemetry = {
    observe: (gauge: string, reader: Gauges[string]) => void Object.assign(read, { [gauge]: reader }),
  }
  observe(services, { waiting: 7, stalledSeconds: 2 }, telemetry, 1_000)
  return read
}

const met = async () => {}
const unmet = async () => {
  throw new Error('It is not there')
}

async function readyIn(read: Gauges): Promise<Record<string, number>> {
  const observed = await read['grandlivre.ready']!()
  return Object.fromEntries(observed.map(({ labels, value }) => [labels!['need'], value]))
}

test('each gauge of a need is 1 or 0, and without a pooler there is no gauge for it', async () => {
  const read = gauges([
    { name: 'the database', label: 'database', check: met },
    { name: 'the store of files', label: 'store', check: unmet },
  ])
  expect(await readyIn(read)).toEqual({ database: 1, store: 0, connections: 1, requests: 1 })
  expect(await read['grandlivre.pooler.ready']!()).toEqual([])
  expect(await read['grandlivre.audit.waiting']!()).toEqual([{ value: 7 }])
  expect(await read['grandlivre.audit.stalled']!()).toEqual([{ value: 2 }])
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
  const offset = async () => (await read['grandlivre.clock.offset']!())[0]!.value
  // Within five seconds.
  expect(await offset()).toBeCloseTo(0, -1)
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 100_000 })
  expect(await offset()).toBeCloseTo(100, -1)
})
