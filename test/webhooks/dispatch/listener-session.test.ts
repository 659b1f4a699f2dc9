/** The locks of processes beside each other, on a real database. */
import { expect, test } from 'vitest'
import { ListenerSession } from '../../../src/webhooks/dispatch/listener-session.ts'
import { createTestDatabase } from '../../support/servers/database.ts'

const ids = Array.from({ length: 200 }, (_, number) => String(number))

test('of many subscriptions that two processes ask for at once each is one process’s, until it gives it back', async ({
  onTestFinished,
}) => {
  const database = await createTestDatabase()
  const open = () => ListenerSession.open(database.serviceUrl, () => {})
  const [one, two] = [await open(), await open()]
  onTestFinished(async () => {
    await Promise.all([one.close(), two.close()])
    await database.drop()
  })
  const ask = (session: ListenerSession) => Promise.all(ids.map((id) => session.lock(id)))
  const [ones, twos] = await Promise.all([ask(one), ask(two)])
  expect(ids.filter((_, place) => ones[place] === twos[place])).toEqual([])
  const held = ids.filter((_, place) => ones[place])
  await Promise.all(held.map((id) => one.unlock(id)))
  expect(await ask(two)).toEqual(ids.map(() => true))
  expect(await one.lock('0')).toBe(false)
  // A lock ends with its connection, and one that is gone takes none.
  await two.close()
  expect(await two.lock('new')).toBe(false)
  while (!(await one.lock('0')));
})
