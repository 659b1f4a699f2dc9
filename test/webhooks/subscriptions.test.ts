/** How changing a subscription affects the events it receives. No dispatcher runs. */
import type pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createPool, inTenant } from '../../src/db/pool.ts'
import {
  changeSubscription,
  deleteOwnSubscription,
  disableSubscription,
  enableSubscription,
  findOwnSubscription,
  insertSubscription,
  type Owner,
  type Subscription,
} from '../../src/webhooks/subscriptions.sql.ts'
import { createTenants, type Staff } from '../support/ledgers/tenants.ts'
import { createTestDatabase, type TestDatabase } from '../support/servers/database.ts'
import { until } from '../support/until.ts'

let database: TestDatabase
let staff: Staff
let pool: pg.Pool
let owner: Owner

beforeAll(async () => {
  database = await createTestDatabase()
  staff = await createTenants(database.ownerUrl)
  await staff.thirdParty('ONE')
  pool = createPool(database.serviceUrl, { max: 2, applicationName: 'subscriptions test' })
  const [{ id }] = await sql('select id from third_parties')
  owner = { schemaId: '100', thirdPartyId: id, level: 'firm', firmId: '110', folderId: null }
  await staff.client.query('set search_path = grandlivre')
})
afterEach(async () => {
  await sql('delete from subscriptions')
  await sql('delete from events')
})
afterAll(async () => {
  await pool?.end()
  await staff?.end()
  await database?.drop()
})

// biome-ignore lint/suspicious/noExplicitAny: rows of any shape
async function sql(text: string, values: unknown[] = []): Promise<any[]> {
  await staff.client.query('set search_path = grandlivre')
  return (await staff.client.query(text, values)).rows
}

const inFirst = <T>(run: (client: pg.PoolClient) => Promise<T>) => inTenant(pool, '100', run)

function subscribe(changed: Partial<Subscription> = {}): Promise<Subscription> {
  const fields = { ...owner, postUrl: 'https://hooks.test/', onEvents: ['document'], folderIds: ['111'] }
  return inFirst((client) => insertSubscription(client, { ...fields, ...changed }))
}

/** @returns its id */
async function addEvent(name: string, folderId: number | null = null, schemaId = 100): Promise<number> {
  const [{ id }] = await sql(
    `insert into events (schema_id, folder_id, name, operation, scope, data)
     values ($1, $2, $3, 'CREATE', '{}', '{}') returning id::int`,
    [schemaId, folderId, name],
  )
  return id
}

/** The last event that it has passed; the next one is collected after it. */
async function positionOf({ id }: Subscription): Promise<number> {
  const [{ at }] = await sql(
    `select coalesce(p.position, s.start_position)::int as at from subscriptions s
     left join subscription_positions p on p.subscription_id = s.id where s.id = $1`,
    [id],
  )
  return at
}

/** A pending delivery, and a delivered one. */
async function addDeliveries({ id }: Subscription): Promise<void> {
  await sql(
    `insert into deliveries (schema_id, subscription_id, first_event, last_event, events, body, state, next_attempt_at,
       finished_at)
     values (100, $1, 1, 1, 1, null, 'delivered', null, now()), (100, $1, 2, 2, 1, '[]', 'pending', now(), null)`,
    [id],
  )
}

const change = (subscription: Subscription, to: Partial<Subscription>) =>
  inFirst((client) => changeSubscription(client, subscription.id, { ...subscription, ...to }))

test('a new subscription starts at the newest event of its schema', async () => {
  expect(await positionOf(await subscribe())).toBe(0)
  const last = await addEvent('document', 111)
  await addEvent('document', null, 200)
  expect(await positionOf(await subscribe())).toBe(last)
})

describe('a changed filter', () => {
  test('does not apply to past events, however long ago the last event of the old filter was', async () => {
    const subscription = await subscribe()
    await addEvent('portfolio')
    await addEvent('document', 112)
    const last = await addEvent('exercice', 111)
    await change(subscription, { onEvents: ['document', 'exercice'] })
    expect(await positionOf(subscription)).toBe(last)
    const later = await addEvent('document', 112)
    await change({ ...subscription, onEvents: ['document', 'exercice'] }, { folderIds: ['111', '112'] })
    expect(await positionOf(subscription)).toBe(later)
    const latest = await addEvent('taxReturnSent')
    await change(
      { ...subscription, folderIds: ['111', '112'] },
      { folderIds: [], onEvents: ['taxReturnSent'] },
    )
    expect(await positionOf(subscription)).toBe(latest)
  })

  test('skips no event of the old filter that is still to be collected', async () => {
    const subscription = await subscribe()
    await addEvent('exercice', 111)
    await addEvent('document', 111)
    await addEvent('exercice', 111)
    await change(subscription, { onEvents: ['document', 'exercice'] })
    expect(await positionOf(subscription)).toBe(await startOf(subscription))
  })

  test('ignores events of other tenants', async () => {
    const subscription = await subscribe()
    await addEvent('exercice', 211, 200)
    await change(subscription, { onEvents: ['exercice'] })
    expect(await positionOf(subscription)).toBe(await startOf(subscription))
  })

  test('keeps the position if only the address changes', async () => {
    const subscription = await subscribe()
    await addEvent('exercice', 111)
    await change(subscription, { postUrl: 'https://hooks.test/new' })
    expect(await positionOf(subscription)).toBe(await startOf(subscription))
    expect(await sql('select post_url from subscriptions')).toEqual([{ post_url: 'https://hooks.test/new' }])
  })

  test('leaves a pending retry to its delay, while a changed address makes it due at once', async () => {
    const subscription = await subscribe()
    const other = await subscribe()
    for (const each of [subscription, other]) await addDeliveries(each)
    await sql(`update deliveries set next_attempt_at = now() + interval '1 day' where state = 'pending'`)
    const due = async () =>
      (
        await sql(
          `select subscription_id as id from deliveries where state = 'pending' and next_attempt_at <= now()`,
        )
      ).map(({ id }) => id)
    await change(subscription, { onEvents: ['document', 'exercice'] })
    expect(await due()).toEqual([])
    await change(subscription, { postUrl: 'https://hooks.test/new' })
    expect(await due()).toEqual([subscription.id])
  })

  const startOf = async ({ id }: Subscription) =>
    (await sql('select start_position::int as at from subscriptions where id = $1', [id]))[0].at
})

describe('a subscription', () => {
  test('that is disabled fails its pending deliveries, keeps their bodies, and records the reason', async () => {
    const subscription = await subscribe()
    const other = await subscribe()
    await addDeliveries(subscription)
    await addDeliveries(other)
    const now = Date.parse('2026-11-21T10:00:00Z')
    const disable = () => inFirst((client) => disableSubscription(client, subscription.id, 'it is gone', now))
    expect([await disable(), await disable()]).toEqual([true, false])
    const columns = 'state, body, next_attempt_at is null as unplanned, finished_at'
    expect(
      await sql(`select ${columns} from deliveries where subscription_id = $1 order by id`, [
        subscription.id,
      ]),
    ).toEqual([
      { state: 'delivered', body: null, unplanned: true, finished_at: expect.any(Date) },
      { state: 'failed', body: Buffer.from('[]'), unplanned: true, finished_at: new Date(now) },
    ])
    expect(
      await sql('select state from deliveries where subscription_id = $1 order by id', [other.id]),
    ).toEqual([{ state: 'delivered' }, { state: 'pending' }])
    expect(await sql('select enabled, disabled_reason, disabled_at from subscriptions order by id')).toEqual([
      { enabled: false, disabled_reason: 'it is gone', disabled_at: new Date(now) },
      { enabled: true, disabled_reason: null, disabled_at: null },
    ])
  })

  test('that is disabled while a batch is being stored fails that batch too', async () => {
    const subscription = await subscribe()
    await sql('begin')
    await sql('select from subscriptions where id = $1 for no key update', [subscription.id])
    const disabled = inFirst((client) =>
      disableSubscription(client, subscription.id, 'it is gone', Date.now()),
    )
    await until(async () => {
      const [{ waits }] = await sql(
        `select count(*)::int as waits from pg_stat_activity where pg_backend_pid() = any (pg_blocking_pids(pid))`,
      )
      return waits === 1
    })
    await addDeliveries(subscription)
    await sql('commit')
    expect(await disabled).toBe(true)
    expect(await sql(`select from deliveries where state = 'pending'`)).toEqual([])
  })

  test('that is enabled starts at the newest event, and only the first time', async () => {
    const subscription = await subscribe()
    await sql('insert into subscription_positions values (100, $1, 0)', [subscription.id])
    await inFirst((client) => disableSubscription(client, subscription.id, 'it is gone', Date.now()))
    const missed = await addEvent('document', 111)
    const enable = () => inFirst((client) => enableSubscription(client, subscription.id))
    expect([await enable(), await positionOf(subscription)]).toEqual([true, missed])
    await addEvent('document', 111)
    expect([await enable(), await positionOf(subscription)]).toEqual([false, missed])
  })

  test('that is deleted takes its deliveries and positions with it', async () => {
    const subscription = await subscribe()
    const other = await subscribe()
    for (const each of [subscription, other]) await addDeliveries(each)
    await sql('insert into subscription_positions values (100, $1, 0)', [subscription.id])
    const stranger = { ...owner, firmId: '120' }
    expect(await inFirst((client) => deleteOwnSubscription(client, stranger, subscription.id))).toBe(false)
    expect(
      await inTenant(pool, '200', (client) => deleteOwnSubscription(client, owner, subscription.id)),
    ).toBe(false)
    expect(await inFirst((client) => deleteOwnSubscription(client, owner, subscription.id))).toBe(true)
    expect(await sql('select distinct subscription_id from deliveries')).toEqual([
      { subscription_id: other.id },
    ])
    expect(await sql('select from subscription_positions')).toEqual([])
  })

  test('is visible in its own tenant only', async () => {
    const { id } = await subscribe()
    const find = (tenant: string) =>
      inTenant(pool, tenant, (client) => findOwnSubscription(client, owner, id))
    expect([(await find('100'))?.id, (await find('200'))?.id]).toEqual([id, undefined])
  })
})
