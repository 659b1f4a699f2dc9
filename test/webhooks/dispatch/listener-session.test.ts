/** Locks of subscriptions, held by several sessions, on a real database. */
import { expect, test } from 'vitest'
import { ListenerSession } from '../../../src/webhooks/dispatch/listener-session.ts'
import { forEachTest } from '../../support/for-tests.ts'
import { connect, createTestDatabase } from '../../support/servers/database.ts'
import { testMasterKey } from '../../support/service.ts'

const database = forEachTest(() => createTestDatabase())
const client = forEachTest(() => connect(database.ownerUrl))
const open = () => ListenerSession.open(database.serviceUrl, [testMasterKey], () => {})
const one = forEachTest(open)
const two = forEachTest(open)

const ids = Array.from({ length: 200 }, (_, number) => String(number))

test('if two sessions lock many subscriptions at once, only one session holds each until it unlocks it', async () => {
  const lockAll = (session: ListenerSession) => Promise.all(ids.map((id) => session.lock(id)))
  const [ones, twos] = await Promise.all([lockAll(one), lockAll(two)])
  expect(ids.filter((_, index) => ones[index] === twos[index])).toEqual([])
  const held = ids.filter((_, index) => ones[index])
  await Promise.all(held.map((id) => one.unlock(id)))
  expect(await lockAll(two)).toEqual(ids.map(() => true))
  expect(await one.lock('0')).toBe(false)
  // A lock ends with its connection, and a closed session gets no locks.
  await two.close()
  expect(await two.lock('new')).toBe(false)
  while (!(await one.lock('0')));
})

test('after a crash of the database, delivery ids that it may have forgotten are skipped', async () => {
  const next = async () =>
    Number((await client.query(`select nextval('grandlivre.delivery_ids') as id`)).rows[0].id)
  const before = await next()
  await (await open()).close()
  expect(await next()).toBe(before + 10_001)
})
