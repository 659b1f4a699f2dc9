import { expect, test } from 'vitest'
import { readByCursor } from '../../src/db/cursor.ts'
import { isConnectionLoss } from '../../src/db/outage.ts'
import { forEachTest } from '../support/for-tests.ts'
import { ask, connect, createTestDatabase } from '../support/servers/database.ts'

const database = forEachTest(() => createTestDatabase({ template: 'template1' }))
const client = forEachTest(() => connect(database.ownerUrl))

/** Callers ask for more rows than the stream fetches ahead. */
const numbers = 'select i::int as number from generate_series(1, $1) as i'

test('rows come in batches, the last with the remaining rows, and the connection is free again', async () => {
  const listeners = () => [client.listenerCount('error'), client.listenerCount('end')]
  const before = listeners()
  const batches: number[][] = []
  for await (const batch of readByCursor<{ number: number }>(client, numbers, [250]))
    batches.push(batch.map(({ number }) => number))
  expect(batches.map((batch) => batch.length)).toEqual([100, 100, 50])
  expect(batches.flat()).toEqual(Array.from({ length: 250 }, (_, index) => index + 1))
  expect(listeners()).toEqual(before)
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
})

test('a reader that stops early returns at once, even if the connection is lost', async () => {
  const { rows: own } = await client.query('select pg_backend_pid() as pid')
  for await (const batch of readByCursor(client, numbers, [100_000], 10)) {
    expect(batch).toHaveLength(10)
    await terminate(own[0].pid)
    break
  }
})

test('a query that fails after some rows rejects the read, and the connection stays usable', async () => {
  const rows = readByCursor(
    client,
    'select 1 / (250 - i) as quotient from generate_series(1, $1) as i',
    [400],
  )
  expect((await rows.next()).value).toHaveLength(100)
  await expect(Array.fromAsync(rows)).rejects.toThrow('division by zero')
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
})

test('a connection lost between two batches rejects the read', async () => {
  const { rows: own } = await client.query('select pg_backend_pid() as pid')
  const rows = readByCursor(client, numbers, [100_000])
  await rows.next()
  const cut = new Promise((resolve) => client.once('end', resolve))
  await terminate(own[0].pid)
  await cut
  const error = await Array.fromAsync(rows).catch((thrown: unknown) => thrown)
  expect([String(error), isConnectionLoss(error)]).toEqual([expect.any(String), true])
})

test('a connection lost while rows are awaited rejects the read', async () => {
  const { rows: own } = await client.query('select pg_backend_pid() as pid')
  const waiting = Array.fromAsync(
    readByCursor(client, 'select pg_sleep($1) from generate_series(1, 9)', [60]),
  )
  const error = waiting.catch((thrown: unknown) => thrown)
  await terminate(own[0].pid)
  expect(isConnectionLoss(await error)).toBe(true)
})

const terminate = (pid: number) => ask(database.ownerUrl, 'select pg_terminate_backend($1, 10000)', [pid])
