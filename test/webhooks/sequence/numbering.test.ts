/** Numbers are consecutive and each event has one, even if several processes give numbers at the same time. */
import { beforeAll, expect, test } from 'vitest'
import { createPool, inTenant, whileDelivering } from '../../../src/db/pool.ts'
import { publish } from '../../../src/events/publish.ts'
import type { NumberedEvent } from '../../../src/webhooks/body.ts'
import { readEvents } from '../../../src/webhooks/sequence/events.ts'
import { oldestNumber, readNumbered } from '../../../src/webhooks/sequence/numbered.sql.ts'
import { lockSubscription, numberInParts, numberNext } from '../../../src/webhooks/sequence/numbering.sql.ts'
import {
  applyChange,
  insertSubscription,
  lockOwnSubscription,
  type Owner,
} from '../../../src/webhooks/subscriptions.sql.ts'
import { forTests } from '../../support/for-tests.ts'
import { createTenants } from '../../support/ledgers/tenants.ts'
import { createTestDatabase } from '../../support/servers/database.ts'
import { documentEvent, documents, numbered } from '../../support/stages/webhooks.ts'

const database = forTests(() => createTestDatabase())
const staff = forTests(() => createTenants(database.ownerUrl))
const poolOfProcess = () => createPool(database.serviceUrl, { max: 6, applicationName: 'numbering test' })
const pools = [forTests(poolOfProcess), forTests(poolOfProcess)] as const
let owner: Owner

beforeAll(async () => {
  await staff.thirdParty('ONE')
  await staff.client.query('set search_path = grandlivre')
  const { rows } = await staff.client.query('select id from third_parties')
  owner = { schemaId: '100', thirdPartyId: rows[0].id, level: 'firm', firmId: '110', folderId: null }
})

async function subscribe(): Promise<string> {
  const fields = { postUrl: null, onEvents: ['document'], folderIds: [] }
  return (await insertSubscription(staff.client, { ...owner, ...fields })).id
}

function add(names: string[], kind: 'document' | 'portfolio' = 'document'): Promise<void> {
  const events =
    kind === 'document'
      ? documents(names)
      : names.map((id) => ({ name: kind, operation: 'CREATE', data: { id } }) as const)
  return inTenant(pools[0], '100', (client) => publish(client, '100', events))
}

const numberAllOf = (id: string) => numberInParts((run) => inTenant(pools[0], '100', run), id)

async function allOf(id: string): Promise<(NumberedEvent & { data: { name?: string } })[]> {
  await numberAllOf(id)
  const found: Awaited<ReturnType<typeof allOf>> = []
  for (;;) {
    const page = await inTenant(pools[0], '100', (client) => readNumbered(client, id, found.length, 1000))
    if (page.length === 0) return found
    found.push(...(page as typeof found))
  }
}

const eventIds = async (kinds: string[]) =>
  (await staff.client.query('select id from events where name = any ($1) order by id', [kinds])).rows.map(
    ({ id }) => id,
  )

test('deliveries, readers and patches that number events during commits repeat none and leave out none', async () => {
  await staff.client.query('delete from events')
  const id = await subscribe()
  let isPublishing = true
  const publishing = (async () => {
    for (let commit = 0; commit < 120; commit += 1) {
      await add(numbered(1 + (commit % 7), commit * 10))
      await add([`p${commit}`], 'portfolio')
    }
    isPublishing = false
  })()
  const repeat = async (work: () => Promise<unknown>) => {
    while (isPublishing) await work()
  }
  const filters = [['document'], ['document', 'portfolio']]
  let patches = 0
  await Promise.all([
    publishing,
    ...pools.flatMap((pool) => [
      // As the dispatcher does.
      repeat(() =>
        whileDelivering(pool, async (client) => {
          await lockSubscription(client, id)
          await numberNext(client, id, 3)
        }),
      ),
      repeat(() => readEvents(pool, owner, id, 0, 10)),
      repeat(() =>
        inTenant(pool, '100', async (client) => {
          const before = await lockOwnSubscription(client, owner, id)
          patches += 1
          const onEvents = filters[patches % 2]!
          await applyChange(client, before, { to: { ...before, onEvents }, skips: false })
        }),
      ),
    ]),
  ])
  const all = await allOf(id)
  expect(patches).toBeGreaterThan(0)
  expect(all.map(({ sequence }) => sequence)).toEqual(all.map((_, index) => index + 1))
  const ids = all.map((event) => event.id)
  expect(ids).toEqual(ids.toSorted((one, other) => Number(one) - Number(other)))
  expect(new Set(ids).size).toBe(ids.length)
  // Every filter selects documents, so every document has a number.
  expect(all.filter(({ name }) => name === 'document').map((event) => event.id)).toEqual(
    await eventIds(['document']),
  )
  const { rows } = await staff.client.query('select numbered::int from subscriptions where id = $1', [id])
  expect(rows[0].numbered).toBe(all.length)
})

test('a reader that comes while the dispatcher gives numbers waits for it, and continues after them', async () => {
  await staff.client.query('delete from events')
  const id = await subscribe()
  await add(numbered(5))
  let reading: ReturnType<typeof readEvents> | undefined
  await whileDelivering(pools[0], async (client) => {
    await lockSubscription(client, id)
    expect((await numberNext(client, id, 2)).map(({ sequence }) => sequence)).toEqual([1, 2])
    reading = readEvents(pools[1], owner, id, 0, 100)
    // The reader waits: the lock is held until the transaction ends.
    for (let waiting = 0; waiting === 0; )
      waiting = (
        await staff.client.query(
          `select count(*)::int as count from pg_stat_activity
           where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`,
        )
      ).rows[0].count
  })
  const page = await reading
  const sequences = JSON.parse(page!.json).map(({ sequence }: { sequence: string }) => sequence)
  expect([sequences, page!.latest]).toEqual([['1', '2', '3', '4', '5'], 5])
})

test('long runs are split at a thousand numbers, and can be read from any number on', async () => {
  await staff.client.query('delete from events')
  const id = await subscribe()
  // Between two events of the subscription there are eleven others.
  await staff.client.query(
    `insert into events (schema_id, name, operation, scope, data)
     select 100, case when i % 12 = 0 then 'document' else 'portfolio' end, 'CREATE', '{}', '{}'
     from generate_series(1, 30000) as i`,
  )
  const expected = await eventIds(['document'])
  expect(expected.length).toBe(2500)
  expect((await allOf(id)).map((event) => event.id)).toEqual(expected)
  const { rows } = await staff.client.query(
    `select max(last_sequence - first_sequence + 1)::int as most from sequence_runs where subscription_id = $1`,
    [id],
  )
  expect(rows[0].most).toBeLessThanOrEqual(1000)
  for (const [after, most] of [
    [0, 1],
    [832, 3],
    [999, 2],
    [1000, 1000],
    [2499, 10],
    [2500, 10],
  ] as const) {
    const page = await inTenant(pools[0], '100', (client) => readNumbered(client, id, after, most))
    expect(page.map((event) => event.id)).toEqual(expected.slice(after, after + most))
    expect(page.map(({ sequence }) => sequence)).toEqual(
      expected.slice(after, after + most).map((_, i) => after + i + 1),
    )
  }
})

test('events keep their numbers when earlier events that were numbered with them are deleted', async () => {
  await staff.client.query('delete from events')
  const id = await subscribe()
  await add(numbered(10))
  const before = await allOf(id)
  await staff.client.query('delete from events where id <= $1', [before[3]!.id])
  const read = (after: number, most = 100) =>
    inTenant(pools[0], '100', (client) => readNumbered(client, id, after, most))
  expect(await read(0)).toEqual(before.slice(4))
  expect(await read(0, 6)).toEqual(before.slice(4, 6))
  expect(await read(6)).toEqual(before.slice(6))
  expect(await inTenant(pools[0], '100', (client) => oldestNumber(client, id))).toBe(5)
  await staff.client.query('delete from events')
  expect(await read(0)).toEqual([])
  // Without events, the oldest number is the next one to be given.
  expect(await inTenant(pools[0], '100', (client) => oldestNumber(client, id))).toBe(11)
})

test('a reader is answered even if new events arrive with every numbered batch', async () => {
  await staff.client.query('delete from events')
  const id = await subscribe()
  await add(['first'])
  // Publishes an event after every part, as others may do meanwhile.
  await staff.client.query(`
    create function publish_another() returns trigger language plpgsql as $$ begin
      insert into grandlivre.events (schema_id, name, operation, scope, data)
        select 100, 'document', 'CREATE', '{}', '{}' where new.last_sequence < 50;
      return null;
    end $$;
    create trigger another after insert on sequence_runs for each row execute function publish_another()`)
  try {
    const page = await readEvents(pools[0], owner, id, 0, 10)
    expect(page).toMatchObject({ events: 1, latest: 1 })
    await inTenant(pools[0], '100', async (client) => {
      const before = await lockOwnSubscription(client, owner, id)
      await applyChange(client, before, { to: { ...before, onEvents: ['portfolio'] }, skips: false })
    })
    const { rows } = await staff.client.query('select numbered::int from subscriptions where id = $1', [id])
    expect(rows).toEqual([{ numbered: 2 }])
  } finally {
    await staff.client.query('drop trigger another on sequence_runs; drop function publish_another')
  }
})

test('the next number over all schemas follows the last one, even while earlier events are still kept', async () => {
  await staff.client.query('delete from events')
  const fields = { ...owner, schemaId: null, level: 'staff', firmId: null, postUrl: null } as const
  const { id } = await insertSubscription(staff.client, { ...fields, folderIds: [], onEvents: ['document'] })
  const addTo = (schemaId: number, count: number) =>
    staff.client.query(
      `insert into events (schema_id, name, operation, scope, data)
       select $1, 'document', 'CREATE', '{}', '{}' from generate_series(1, $2)`,
      [schemaId, count],
    )
  const number = () => numberInParts((run) => whileDelivering(pools[0], run), id)
  const oldest = (after: number) => whileDelivering(pools[0], (client) => oldestNumber(client, id, after))
  for (const [schemaId, count] of [
    [200, 10],
    [100, 150],
    [200, 10],
  ] as const) {
    await addTo(schemaId, count)
    await number()
  }
  await staff.client.query('delete from events where schema_id = 100')
  expect(await Promise.all([0, 5, 10, 160, 165, 170].map(oldest))).toEqual([1, 6, 161, 161, 166, 171])
})

test('the order across schemas survives a crash, as these numbers are flushed to disk at commit', async () => {
  await staff.client.query('delete from events')
  await add(['a'])
  const commits = (id: string) =>
    whileDelivering(pools[0], async (client) => {
      await numberInParts((run) => run(client), id)
      return (await client.query('show synchronous_commit')).rows[0].synchronous_commit
    })
  const fields = {
    ...owner,
    level: 'staff',
    firmId: null,
    postUrl: 'https://hooks.test/',
  } as const
  const one = (await insertSubscription(staff.client, { ...fields, folderIds: [], onEvents: ['document'] }))
    .id
  const all = (
    await insertSubscription(staff.client, {
      ...fields,
      schemaId: null,
      folderIds: [],
      onEvents: ['document'],
    })
  ).id
  await add(['b'])
  expect([await commits(one), await commits(all)]).toEqual(['off', 'on'])
})

// A process of an earlier version numbers all events of the schema, and counts the numbers of a run by kinds and folders
// alone. This version does the same for a subscription of staff.
test('numbers given before events had a firm stay, and processes of earlier versions give the same next ones', async () => {
  await staff.client.query('delete from events')
  const id = await subscribe()
  const publishIn = (names: Record<string, string>) => {
    const events = Object.entries(names).map(([name, folderId]) => documentEvent(name, folderId))
    return inTenant(pools[0], '100', (client) => publish(client, '100', events))
  }
  const read = async (level: 'staff' | 'firm') => {
    const firmId = level === 'firm' ? '110' : null
    await staff.client.query('update subscriptions set level = $2, firm_id = $3 where id = $1', [
      id,
      level,
      firmId,
    ])
    return (await allOf(id)).map(({ sequence, data }) => `${sequence} ${data.name}`)
  }
  await publishIn({ own: '111', foreign: '121', ownToo: '112' })
  const former = ['1 own', '2 foreign', '3 ownToo']
  expect(await read('staff')).toEqual(former)
  await publishIn({ first: '111', unheard: '121', second: '111', unheardToo: '121', third: '112' })
  const all = [...former, '4 first', '5 second', '6 third']
  // The event of the other firm keeps its number, and loses its content.
  expect(await read('firm')).toEqual(all.map((each) => each.replace('foreign', 'undefined')))
  expect(await read('staff')).toEqual(all)
})
