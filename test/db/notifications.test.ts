import { expect, test } from 'vitest'
import { Notifications, type Watch } from '../../src/db/notifications.ts'
import { createLog } from '../../src/log.ts'
import { forEachTest } from '../support/for-tests.ts'
import { connect, createTestDatabase } from '../support/servers/database.ts'

const long = 60_000

const database = forEachTest(createTestDatabase)
const staff = forEachTest(() => connect(database.ownerUrl))
const notifications = forEachTest(() => open(10))

function open(most: number): Notifications {
  return new Notifications(database.serviceUrl, createLog('silent'), 50, most)
}

/** Begins a wait without a time limit. `woken` is undefined while the wait lasts. */
function waitOf(watch: Watch): { woken: boolean | undefined; ended: Promise<boolean> } {
  const wait: ReturnType<typeof waitOf> = { woken: undefined, ended: watch.next(long) }
  wait.ended.then((woken) => {
    wait.woken = woken
  })
  return wait
}

async function connections(): Promise<number> {
  const { rows } = await staff.query(
    `select count(*)::int as count from pg_stat_activity
     where datname = current_database() and application_name = 'grandlivre notifications'`,
  )
  return rows[0].count
}

test('a notification wakes only those that watch its channel and id', async () => {
  const [event, sameEvent] = [
    await notifications.watch('grandlivre_events', '7'),
    await notifications.watch('grandlivre_events', '7'),
  ]
  const ledger = waitOf(await notifications.watch('grandlivre_ledgers', '7'))
  const other = waitOf(await notifications.watch('grandlivre_events', '70'))
  const waits = [event, sameEvent].map(waitOf)
  await staff.query(`notify grandlivre_events, '7'`)
  expect(await Promise.all(waits.map(({ ended }) => ended))).toEqual([true, true])
  // On the same connection, notifications arrive in the order of their commits.
  const later = waitOf(event)
  await staff.query(`notify grandlivre_events, '7'`)
  await later.ended
  expect([ledger.woken, other.woken]).toEqual([undefined, undefined])
  await staff.query(`notify grandlivre_ledgers, '7'`)
  expect(await ledger.ended).toBe(true)
  expect(other.woken).toBeUndefined()
})

test('a notification between the start of a watch and its wait counts once', async () => {
  const [early, marker] = [
    await notifications.watch('grandlivre_events', '1'),
    await notifications.watch('grandlivre_events', '2'),
  ]
  await staff.query(`notify grandlivre_events, '1'`)
  await staff.query(`notify grandlivre_events, '2'`)
  await marker.next(long)
  expect(await early.next(0)).toBe(true)
  expect(await early.next(10)).toBe(false)
})

test('one connection serves all watches, and none is opened before the first', async () => {
  expect(await connections()).toBe(0)
  for (let id = 1; id <= 5; id += 1) await notifications.watch('grandlivre_ledgers', String(id))
  expect(await connections()).toBe(1)
})

test('a lost connection is opened again, and then every waiting request compares again', async () => {
  const wait = waitOf(await notifications.watch('grandlivre_events', '1'))
  await staff.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name = 'grandlivre notifications'`,
  )
  expect(await wait.ended).toBe(true)
  const again = waitOf(await notifications.watch('grandlivre_events', '2'))
  await staff.query(`notify grandlivre_events, '2'`)
  expect(await again.ended).toBe(true)
  expect(await connections()).toBe(1)
})

test('an unreachable database gives ERR-UNAVAILABLE, and no request stays waiting', async () => {
  const nowhere = new Notifications('postgres://nobody@127.0.0.1:1/none', createLog('silent'), 10)
  await expect(nowhere.watch('grandlivre_events', '1')).rejects.toThrow(
    expect.objectContaining({ code: 'ERR-UNAVAILABLE' }),
  )
  await nowhere.close()
})

test('a request beyond the limit is refused at once; a request that leaves makes room for another', async () => {
  const few = open(2)
  const watches = await Promise.all([1, 2, 3].map(() => few.watch('grandlivre_events', '1')))
  const waits = watches.slice(0, 2).map(waitOf)
  await expect(watches[2]!.next(long)).rejects.toThrow(expect.objectContaining({ code: 'ERR-UNAVAILABLE' }))
  // A request that need not wait is not refused.
  expect(await watches[2]!.next(0)).toBe(false)
  // A request that was woken and waits again keeps its place.
  await staff.query(`notify grandlivre_events, '1'`)
  await Promise.all(waits.map(({ ended }) => ended))
  const again = waitOf(watches[0]!)
  expect(await watches[2]!.next(0)).toBe(true)
  await expect(watches[2]!.next(long)).rejects.toThrow('2 requests wait already')
  // A request that waits for something else counts, too.
  expect(() => watches[2]!.admit()).toThrow('2 requests wait already')
  watches[1]![Symbol.dispose]()
  watches[2]!.admit()
  const admitted = waitOf(watches[2]!)
  await staff.query(`notify grandlivre_events, '1'`)
  expect(await Promise.all([again.ended, admitted.ended])).toEqual([true, true])
  await few.close()
})

test('a process that stops ends every wait, and new waits end at once', async () => {
  const watch = await notifications.watch('grandlivre_events', '1')
  const wait = waitOf(watch)
  notifications.stopWaiting()
  expect(await wait.ended).toBe(false)
  expect(await watch.next(long)).toBe(false)
  const late = await notifications.watch('grandlivre_events', '1')
  expect(await late.next(long)).toBe(false)
})
