/** How subscriptions with something to send are found, on a real database. */
import type { PoolClient } from 'pg'
import { expect, test } from 'vitest'
import { createPool, whileDelivering } from '../../../src/db/pool.ts'
import type { Search } from '../../../src/webhooks/dispatch/rounds.ts'
import { findDue, findWork, movePositions, type Work } from '../../../src/webhooks/dispatch/work.sql.ts'
import { forEachTest } from '../../support/for-tests.ts'
import { documentEvent, documents, numbered, setWebhookStage } from '../../support/stages/webhooks.ts'

const most = 10

const stage = forEachTest(setWebhookStage)
const pool = forEachTest(() => createPool(stage.serviceUrl, { max: 1, applicationName: 'grandlivre test' }))
const run = <Result>(work: (client: PoolClient) => Promise<Result>) => whileDelivering(pool, work)
const search = (changed: Partial<Search> = {}) =>
  run((client) =>
    findWork(client, Date.now(), { schemaIds: null, rounds: new Map(), whom: 'others', ...changed }, most),
  )

/** @returns ids, ascending */
async function subscribeMany(count: number): Promise<string[]> {
  const ids: string[] = []
  for (let number = 0; number < count; number++) ids.push(await stage.subscribe(`/${number}`))
  return ids
}

const idsOf = (work: Work[], examined = true) =>
  work.filter((each) => each.examined === examined).map(({ subscriptionId }) => subscriptionId)

test('a search examines a limited number of subscriptions per third party, and returns where the next search continues', async () => {
  const ids = await subscribeMany(25)
  const other = await stage.subscribeOther('/other')
  await stage.publish([documentEvent('a')])
  const first = await search()
  expect(idsOf(first)).toEqual([...ids.slice(0, 10), other])
  expect(first.filter(({ examined }) => !examined)).toMatchObject([
    { subscriptionId: ids[10], thirdPartyId: stage.thirdPartyId },
  ])
  const from = (id: string) => new Map([[stage.thirdPartyId, id]])
  const second = await search({ rounds: from(ids[10]!), whom: 'own' })
  expect([idsOf(second), idsOf(second, false)]).toEqual([ids.slice(10, 20), [ids[20]]])
  const third = await search({ rounds: from(ids[20]!), whom: 'own' })
  expect([idsOf(third), idsOf(third, false)]).toEqual([ids.slice(20), []])
  expect(idsOf(await search({ rounds: from('0') }))).toEqual([other])
})

test('subscriptions with nothing to send count as examined', async () => {
  const ids = await subscribeMany(15)
  expect(idsOf(await search(), false)).toEqual([ids[10]])
  expect(idsOf(await search())).toEqual([])
})

test('a search for a schema finds the subscriptions that receive its events', async () => {
  const here = await stage.subscribe('/here')
  const elsewhere = await stage.subscribe('/elsewhere', { schemaId: '200' })
  const all = await stage.subscribe('/all', { schemaId: null })
  await stage.publish([documentEvent('a')], '100')
  await stage.publish([documentEvent('a')], '200')
  expect(idsOf(await search({ schemaIds: ['100'] }))).toEqual([here, all])
  expect(idsOf(await search({ schemaIds: ['200'] }))).toEqual([elsewhere, all])
  expect(idsOf(await search({ schemaIds: null }))).toEqual([here, elsewhere, all])
})

test('a search reads only deliveries of the subscriptions that it examines, however many await a retry', async () => {
  await stage.subscribe('/0')
  await stage.sql(
    `insert into subscriptions (id, schema_id, level, third_party_id, post_url, on_events, start_position)
     select nextval('ids'), schema_id, level, third_party_id, post_url, on_events, 0
     from subscriptions cross join generate_series(1, 999)`,
  )
  await stage.sql(
    `insert into deliveries (schema_id, subscription_id, first_event, last_event, events, body, next_attempt_at)
     select 100, id, 1, 1, 1, '', now() + interval '1 hour' from subscriptions`,
  )
  await stage.sql('analyze')
  await stage.publish([documentEvent('a')])
  const rowsRead = async (client: PoolClient) => {
    const { rows } = await client.query(
      `select seq_tup_read + idx_tup_fetch as rows from pg_stat_xact_user_tables where relname = 'deliveries'`,
    )
    return Number(rows[0].rows)
  }
  const read = () =>
    run(async (client) => {
      const before = await rowsRead(client)
      await findWork(client, Date.now(), { schemaIds: null, rounds: new Map(), whom: 'others' }, most)
      return (await rowsRead(client)) - before
    })
  // PostgreSQL plans a prepared statement afresh five times, and then may keep one plan for good.
  for (let time = 0; time < 8; time++) expect(await read()).toBeLessThanOrEqual(2 * most)
  expect(idsOf(await search())).toEqual([])
})

test('retries are found at the moment they become due', async () => {
  const [here, all] = [await stage.subscribe('/here'), await stage.subscribe('/all', { schemaId: null })]
  await stage.sql(
    `insert into deliveries
       (schema_id, subscription_id, first_event, last_event, events, body, next_attempt_at, attempts)
     values (100, $1, 1, 1, 1, '', to_timestamp(1000), 1), (100, $2, 1, 1, 1, '', to_timestamp(2000), 1),
       (100, $3, 1, 1, 1, '', to_timestamp(500), 0)`,
    [here, all, await stage.subscribe('/begun')],
  )
  const due = (after: number, until: number) => run((client) => findDue(client, after, until))
  const { thirdPartyId } = stage
  expect(await due(0, 999_999)).toEqual([])
  expect(await due(999_999, 1_000_000)).toEqual([{ thirdPartyId, schemaId: '100' }])
  expect(await due(1_000_000, 1_999_999)).toEqual([])
  expect(await due(1_000_000, 2_000_000)).toEqual([{ thirdPartyId, schemaId: null }])
})

test('positions are moved in batches', async () => {
  const ids: string[] = []
  for (let number = 0; number < 5; number++)
    ids.push(await stage.subscribe('/idle', { onEvents: ['portfolio'] }))
  await stage.publish(documents(numbered(1_500)))
  const moved = async () =>
    (await stage.sql('select subscription_id as id from subscription_positions where position = 1500')).length
  let from: string | undefined = '0'
  const parts: [string | undefined, number][] = []
  while (from !== undefined) {
    const first: string = from
    from = await run((client) => movePositions(client, first, 2))
    parts.push([from, await moved()])
  }
  expect(parts).toEqual([
    [ids[2], 2],
    [ids[4], 4],
    [undefined, 5],
  ])
})
