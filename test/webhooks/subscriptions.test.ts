/** How changing a subscription affects the events it receives. No dispatcher runs. */
import type pg from 'pg'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createPool, inTenant } from '../../src/db/pool.ts'
import { readNumbered } from '../../src/webhooks/sequence/numbered.sql.ts'
import { lockSubscription, numberInParts } from '../../src/webhooks/sequence/numbering.sql.ts'
import {
  applyChange,
  deleteSubscription,
  disableSubscription,
  enableSubscription,
  findOwnSubscription,
  insertSubscription,
  lockOwnSubscription,
  type Owner,
  type Subscription,
} from '../../src/webhooks/subscriptions.sql.ts'
import { forTests } from '../support/for-tests.ts'
import { createTenants } from '../support/ledgers/tenants.ts'
import { createTestDatabase } from '../support/servers/database.ts'

const database = forTests(() => createTestDatabase())
const staff = forTests(() => createTenants(database.ownerUrl))
const pool = forTests(() =>
  createPool(database.serviceUrl, { max: 2, applicationName: 'subscriptions test' }),
)
let owner: Owner

beforeAll(async () => {
  await staff.thirdParty('ONE')
  const [{ id }] = await sql('select id from third_parties')
  owner = { schemaId: '100', thirdPartyId: id, level: 'firm', firmId: '110', folderId: null }
  await staff.client.query('set search_path = grandlivre')
})
afterEach(async () => {
  await sql('delete from subscriptions')
  await sql('delete from events')
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

/** The position of a subscription: the last event that it has passed. */
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

const change = (subscription: Subscription, to: Partial<Subscription>, skips = false) =>
  inFirst(async (client) => {
    await lockSubscription(client, subscription.id)
    await applyChange(client, subscription, { to: { ...subscription, ...to }, skips })
  })

/** Numbers all events of a subscription. @returns number, name and id of each */
const numbersOf = ({ id }: Subscription) =>
  inFirst(async (client) => {
    await numberInParts((run) => run(client), id)
    const events = await readNumbered(client, id, 0, 1000)
    return events.map(({ sequence, name, id: event }) => `${sequence} ${name} ${event}`)
  })

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

  test('does not change the numbers of earlier events, and applies to events committed later', async () => {
    const subscription = await subscribe()
    const wider = { onEvents: ['document', 'exercice'] }
    const first = await addEvent('document', 111)
    await addEvent('exercice', 111)
    expect(await numbersOf(subscription)).toEqual([`1 document ${first}`])
    const second = await addEvent('document', 111)
    await addEvent('exercice', 111)
    await change(subscription, wider)
    const third = await addEvent('exercice', 111)
    await change({ ...subscription, ...wider }, { onEvents: ['portfolio'], folderIds: [] })
    await addEvent('document', 111)
    const fourth = await addEvent('portfolio')
    expect(await numbersOf(subscription)).toEqual([
      `1 document ${first}`,
      `2 document ${second}`,
      `3 exercice ${third}`,
      `4 portfolio ${fourth}`,
    ])
    // If no event came between two changes, the filter between them is not kept.
    await change({ ...subscription, onEvents: ['portfolio'], folderIds: [] }, { onEvents: ['document'] })
    await change({ ...subscription, onEvents: ['document'], folderIds: [] }, { onEvents: ['exercice'] })
    expect((await numbersOf(subscription)).length).toBe(4)
    expect(await sql('select last_sequence::int as last from former_filters order by 1')).toEqual([
      { last: 2 },
      { last: 3 },
      { last: 4 },
    ])
  })

  test('skips undelivered events if the patch says so: the waiting batch fails, and numbers stay', async () => {
    const subscription = await subscribe()
    const missed = [await addEvent('document', 111), await addEvent('document', 111)]
    await addDeliveries(subscription)
    await change(subscription, {}, true)
    const standing = 'select numbered::int, collected::int from subscriptions'
    expect(await sql(standing)).toEqual([{ numbered: 2, collected: 2 }])
    expect(await sql('select state from deliveries order by id')).toEqual([
      { state: 'delivered' },
      { state: 'failed' },
    ])
    const next = await addEvent('document', 111)
    expect(await numbersOf(subscription)).toEqual([
      `1 document ${missed[0]}`,
      `2 document ${missed[1]}`,
      `3 document ${next}`,
    ])
    expect(await sql(standing)).toEqual([{ numbered: 3, collected: 2 }])
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

  test('makes only its own pending retry due at once', async () => {
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
    expect(await due()).toEqual([subscription.id])
  })

  const startOf = async ({ id }: Subscription) =>
    (await sql('select start_position::int as at from subscriptions where id = $1', [id]))[0].at
})

describe('a subscription', () => {
  test('that is disabled keeps its waiting deliveries, and records the reason', async () => {
    const subscription = await subscribe()
    await subscribe()
    await addDeliveries(subscription)
    const before = await sql('select * from deliveries order by id')
    const now = Date.parse('2026-11-21T10:00:00Z')
    const disable = () => inFirst((client) => disableSubscription(client, subscription.id, 'it is gone', now))
    expect([await disable(), await disable()]).toEqual([true, false])
    expect(await sql('select * from deliveries order by id')).toEqual(before)
    expect(await sql('select enabled, disabled_reason, disabled_at from subscriptions order by id')).toEqual([
      { enabled: false, disabled_reason: 'it is gone', disabled_at: new Date(now) },
      { enabled: true, disabled_reason: null, disabled_at: null },
    ])
  })

  test('that is enabled again continues where it stopped, and its waiting delivery is due at once', async () => {
    const subscription = await subscribe()
    const delivered = await addEvent('document', 111)
    expect(await numbersOf(subscription)).toEqual([`1 document ${delivered}`])
    await addDeliveries(subscription)
    await sql(
      `update deliveries set attempts = 5, next_attempt_at = now() + interval '1 day' where state = 'pending'`,
    )
    await inFirst((client) => disableSubscription(client, subscription.id, 'it is gone', Date.now()))
    const missed = await addEvent('document', 111)
    const enable = () => inFirst((client) => enableSubscription(client, subscription.id))
    expect([await enable(), await enable()]).toEqual([true, false])
    expect(
      await sql(`select next_attempt_at <= now() as due, attempts, attempts_before_replay as before from deliveries
        where state = 'pending'`),
    ).toEqual([{ due: true, attempts: 5, before: 5 }])
    expect(await positionOf(subscription)).toBe(delivered)
    expect(await numbersOf(subscription)).toEqual([`1 document ${delivered}`, `2 document ${missed}`])
  })

  test('that is deleted takes its deliveries and positions with it', async () => {
    const subscription = await subscribe()
    const other = await subscribe()
    for (const each of [subscription, other]) await addDeliveries(each)
    await sql('insert into subscription_positions values (100, $1, 0)', [subscription.id])
    await inFirst((client) => deleteSubscription(client, subscription.id))
    expect(await sql('select distinct subscription_id from deliveries')).toEqual([
      { subscription_id: other.id },
    ])
    expect(await sql('select from subscription_positions')).toEqual([])
  })

  test.each([
    ['found', findOwnSubscription],
    ['locked', lockOwnSubscription],
  ])('is %s by its firm and in its tenant only', async (_, find) => {
    const { id } = await subscribe()
    const by = (firm: Owner, tenant = '100') => inTenant(pool, tenant, (client) => find(client, firm, id))
    expect((await by(owner)).id).toBe(id)
    const notFound = { code: 'ERR-WEBHOOK-NOT-FOUND' }
    await expect(by({ ...owner, firmId: '120' })).rejects.toMatchObject(notFound)
    await expect(by(owner, '200')).rejects.toMatchObject(notFound)
  })
})
