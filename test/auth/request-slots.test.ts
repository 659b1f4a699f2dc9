import { afterEach, expect, test } from 'vitest'
import { RequestSlots } from '../../src/auth/request-slots.ts'
import { AppError } from '../../src/errors.ts'
import { createLog } from '../../src/log.ts'
import { forEachTest } from '../support/for-tests.ts'
import { connect, createTestDatabase } from '../support/servers/database.ts'
import { until } from '../support/until.ts'

const silent = createLog('silent')

const database = forEachTest(() => createTestDatabase())
const staff = forEachTest(() => connect(database.ownerUrl))
const opened: RequestSlots[] = []

afterEach(async () => {
  for (const slots of opened.splice(0)) await slots.close()
})

/** Slots on a connection of their own, as each process has them. */
function open(limit = 3, url = database.serviceUrl): RequestSlots {
  const slots = new RequestSlots(url, limit, silent)
  opened.push(slots)
  return slots
}

async function acquire(
  slots: RequestSlots,
  count: number,
  folderId = '1',
  route = '/r',
): Promise<(() => void)[]> {
  return Promise.all(Array.from({ length: count }, () => slots.acquire(route, folderId)))
}

async function isFull(slots: RequestSlots, folderId = '1'): Promise<boolean> {
  try {
    const release = await slots.acquire('/r', folderId)
    release()
    return false
  } catch (error) {
    if (error instanceof AppError && error.code === 'ERR-TOO-MANY-CONCURRENT-REQUEST') return true
    throw error
  }
}

async function locks(): Promise<number> {
  const { rows } = await staff.query(
    `select count(*)::int as count from pg_locks where locktype = 'advisory'
     and database = (select oid from pg_database where datname = current_database())`,
  )
  return rows[0].count
}

/** Returns when the connections are gone: until then they hold their locks. */
async function killConnections(): Promise<void> {
  const { rows } = await staff.query(
    `select pid, pg_terminate_backend(pid) from pg_stat_activity
     where application_name = 'grandlivre request slots' and datname = current_database()`,
  )
  const pids = rows.map(({ pid }) => pid)
  await until(async () => {
    const { rowCount } = await staff.query('select from pg_stat_activity where pid = any ($1)', [pids])
    return rowCount === 0
  })
}

test('each route and folder has as many slots as the limit allows', async () => {
  const slots = open()
  await acquire(slots, 3)
  expect(await isFull(slots)).toBe(true)
  await acquire(slots, 3, '2')
  await acquire(slots, 3, '1', '/other')
  expect(await locks()).toBe(9)
})

test('instances on one database share the slots, and count concurrent claims exactly', async () => {
  const instances = [open(), open(), open()]
  const taken = await Promise.allSettled(
    instances.flatMap((slots) => [slots, slots]).map((slots) => slots.acquire('/r', '1')),
  )
  expect(taken.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
  for (const slots of instances) expect(await isFull(slots)).toBe(true)
})

test('releasing a slot twice frees only one slot', async () => {
  const [one, other] = [open(), open()]
  const [release] = await acquire(one, 3)
  release!()
  release!()
  await until(async () => (await locks()) === 2)
  const [taken] = await acquire(other, 1)
  expect(await isFull(one)).toBe(true)
  expect(await isFull(other)).toBe(true)
  taken!()
})

test('a released slot can be claimed again by the same instance', async () => {
  const slots = open(1)
  for (let round = 0; round < 50; round += 1) (await slots.acquire('/r', '1'))()
  await until(async () => (await locks()) === 0)
})

test('an instance that closes frees its slots', async () => {
  const [closing, other] = [open(), open()]
  await acquire(closing, 3)
  expect(await isFull(other)).toBe(true)
  await closing.close()
  expect(await isFull(other)).toBe(false)
})

test('running requests keep their slots when the connection that holds the slots is lost', async () => {
  const [one, other] = [open(), open()]
  const held = await acquire(one, 3)
  expect(await isFull(other)).toBe(true)
  await killConnections()
  await until(async () => (await locks()) === 3)
  expect(await isFull(one)).toBe(true)
  // The connection of the other instance was killed, too: its next request opens a new one.
  await until(async () => {
    try {
      return await isFull(other)
    } catch (error) {
      if (error instanceof AppError && error.code === 'ERR-UNAVAILABLE') return false
      throw error
    }
  })
  for (const release of held) release()
  await until(async () => (await locks()) === 0)
  expect(await isFull(other)).toBe(false)
})

test('a claim without a database is refused as unavailable', async () => {
  const slots = open(3, 'postgres://nobody:x@127.0.0.1:1/nothing')
  await expect(slots.acquire('/r', '1')).rejects.toMatchObject({ code: 'ERR-UNAVAILABLE' })
})

test('requests that wait for a slot get one in turn, and are never refused', async () => {
  const slots = open(2)
  const [first, second] = await acquire(slots, 2)
  const { signal } = new AbortController()
  const order: number[] = []
  const inTurn = Array.from({ length: 5 }, async (_, n) => {
    const release = await slots.acquireInTurn('/r', '1', signal)
    order.push(n)
    return release!
  })
  // Requests for another folder do not wait.
  const other = await slots.acquireInTurn('/r', '2', signal)
  expect(order).toEqual([])
  first!()
  const released = await inTurn[0]!
  expect(order).toEqual([0])
  second!()
  released()
  for (const waiting of inTurn.slice(1)) (await waiting)()
  expect(order).toEqual([0, 1, 2, 3, 4])
  other!()
  await until(async () => (await locks()) === 0)
})

test('a waiting request gets a slot that another process releases; a request that has ended leaves the line', async () => {
  const [here, there] = [open(1), open(1)]
  const [release] = await acquire(there, 1)
  const gone = new AbortController()
  const { signal } = new AbortController()
  const [first, second] = [here.acquireInTurn('/r', '1', gone.signal), here.acquireInTurn('/r', '1', signal)]
  gone.abort()
  await expect(first).resolves.toBeUndefined()
  release!()
  ;(await second)!()
  await until(async () => (await locks()) === 0)
})
