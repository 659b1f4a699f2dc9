/**
 * Everything that a promoted server gives out belongs to a new epoch, far beyond what its former primary may have given
 * out. Each test draws in one way, as the first act on the new server. The promotion is real; after the first test,
 * each test puts the name of another server back.
 */
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Pool, PoolClient } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { enableWebhook } from '../../../src/acts/subscriptions.ts'
import { createConsoleKey } from '../../../src/auth/console-keys.sql.ts'
import { insertThirdParty } from '../../../src/auth/third-parties.sql.ts'
import { insertToken } from '../../../src/auth/tokens.sql.ts'
import {
  createOwnerPool,
  createPool,
  inTenant,
  inTransaction,
  whileDelivering,
} from '../../../src/db/pool.ts'
import { publish } from '../../../src/events/publish.ts'
import { claimExport, insertExport } from '../../../src/jobs/jobs.sql.ts'
import { IdSource } from '../../../src/ledger/ids.ts'
import { passIds } from '../../../src/ledger/mad/import-mad.sql.ts'
import { addNew } from '../../../src/ledger/replace/replace.sql.ts'
import { createFolder } from '../../../src/ledger/tenants.sql.ts'
import { storeDelivery } from '../../../src/webhooks/dispatch/deliveries.sql.ts'
import { passDeliveryIds } from '../../../src/webhooks/dispatch/work.sql.ts'
import { lockSubscription } from '../../../src/webhooks/sequence/numbering.sql.ts'
import { allowPing, insertSubscription } from '../../../src/webhooks/subscriptions.sql.ts'
import { forTests } from '../../support/for-tests.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { fillPrimary } from '../../support/replication/fill-primary.ts'
import { startReplication } from '../../support/replication/standby.ts'
import { documentEvent } from '../../support/stages/webhooks.ts'
import { until } from '../../support/until.ts'

const { schemaId, firmId, folderId } = folders.first
const place = 'where schema_id = 100 and folder_id = 111'

const replication = forTests(() => startReplication())
let owner: Pool
let service: Pool
let subscriptionId: string
/** The epoch of the primary, and what its sequences had given out before the first was lost. */
let former: State

interface State {
  epoch: string
  sequences: Record<string, string>
}

async function stateOf(database: Pool): Promise<State> {
  const { rows } = await database.query(
    `select sequencename as name, coalesce(last_value, 0)::text as last from pg_sequences where schemaname = 'grandlivre'`,
  )
  const { epoch, epoch_began, server_name, ...sequences } = Object.fromEntries(
    rows.map(({ name, last }) => [name, last]),
  )
  return { epoch, sequences }
}

const poolOf = (url: string) => createOwnerPool(url, { max: 9, applicationName: 'grandlivre test' })

beforeAll(async () => {
  const { primary, standby } = replication
  const { staff, thirdPartyId } = await fillPrimary(primary.ownerUrl)
  await staff.client.query('set search_path = grandlivre')
  const subscription = { schemaId, level: 'staff', firmId: null, thirdPartyId, postUrl: 'https://a.test/' }
  const { id } = await insertSubscription(staff.client, {
    ...subscription,
    onEvents: ['document'],
    folderIds: [],
  } as never)
  subscriptionId = id
  await staff.end()
  const before = poolOf(primary.ownerUrl)
  former = await stateOf(before)
  await before.end()
  await standby.catchUp()
  await primary.stop()
  await standby.promote()
  connectPools()
})
afterAll(async () => {
  await owner?.end()
  await service?.end()
})

function connectPools(): void {
  owner = poolOf(replication.standby.ownerUrl)
  service = createPool(replication.standby.serviceUrl, { max: 9, applicationName: 'grandlivre test' })
}

/** Makes the name in the database that of the former primary. */
const becomeOther = () => owner.query(`select setval('server_name', 1)`)

const newToken = {
  thirdPartyCode: 'PARTNER',
  level: 'api' as const,
  opened: folders.first,
  hash: randomBytes(32),
  hint: 'new',
}
const newThirdParty = {
  code: 'NEW',
  name: 'New',
  kind: 'partner' as const,
  secret: { hash: randomBytes(32), encrypted: randomBytes(60) },
}
const consoleKey = async (client: PoolClient) => {
  await createConsoleKey(client, 'Staff')
  return (await client.query('select max(id) as id from console_keys')).rows[0].id
}
const importedId = async (client: PoolClient) => {
  const ids = new IdSource(client)
  await ids.reserve(1)
  return ids.next()
}
const addedEntry = async (client: PoolClient) => {
  await client.query(
    `create temporary table filed_entries on commit drop as select 1::bigint as id;
     create temporary table entry_matches (filed_id bigint primary key, id bigint, is_new boolean) on commit drop`,
  )
  await addNew(client, 'entry_matches')
  return (await client.query('select id from pg_temp.entry_matches')).rows[0].id
}
const newFolder = async (client: PoolClient) => {
  await createFolder(client, { schemaId, firmId, id: '119', name: 'New' })
  return (await client.query('select ledger_version as version from folders where id = 119')).rows[0].version
}
const subscribe = async (client: PoolClient) => {
  const { rows } = await client.query('select third_party_id as id from subscriptions limit 1')
  const inserted = await insertSubscription(client, {
    schemaId,
    level: 'api',
    firmId,
    thirdPartyId: rows[0].id,
    postUrl: 'https://b.test/',
    onEvents: ['document'],
    folderIds: [folderId],
  } as never)
  return inserted.id
}
const versionAfter = (change: string) => async (client: PoolClient) => {
  await client.query(change)
  const { rows } = await client.query('select ledger_version from folders where id = 111')
  return rows[0].ledger_version
}
const event = async (client: PoolClient) => {
  await publish(client, schemaId, [documentEvent('first', folderId)])
  const { rows } = await client.query(
    'select id, epoch, pass_gate()::integer as now from events where schema_id = 100 order by id desc limit 1',
  )
  expect(rows[0].epoch).toBe(rows[0].now)
  return rows[0].id
}
const delivery = async (client: PoolClient) => {
  await client.query('delete from deliveries')
  await client.query('update subscriptions set numbered = greatest(numbered, 1)')
  const batch = { schemaId, firstEvent: '1', lastEvent: '1', events: 1, firstSequence: 1, lastSequence: 1 }
  const stored = { ...batch, body: Buffer.from('[]') } as never
  return (await storeDelivery(client, subscriptionId, stored, { isReplay: false, now: 0 })).id
}
/** Events get their numbers first. */
const enableAtLatest = async (client: PoolClient) => {
  await client.query(
    `update subscriptions set enabled = false, disabled_at = now(), disabled_reason = 'gone'`,
  )
  await enableWebhook({ id: subscriptionId, latest: 'yes' })(client, {
    staff: 'test',
    masterKeys: [Buffer.alloc(32)],
  })
}
const ping = async (client: PoolClient) => (await allowPing(client, subscriptionId, 0))!.deliveryId
const claim = async (client: PoolClient) => {
  const exportId = `export_${randomBytes(16).toString('hex')}`
  await insertExport(client, {
    schemaId,
    exportId,
    folderId,
    version: '1.0.0',
    format: 'JSON',
    journalIds: [],
    identity: randomBytes(32).toString('hex'),
    requestId: 'test',
  } as never)
  const { seen } = (await claimExport(client, { schemaId, exportId }))!
  expect(seen!.split('.')[1]).not.toBe(former.epoch)
}

/** Draws once. @returns the id; undefined for a number, for a claim, and if ids are only passed over */
type Draw = (client: PoolClient) => Promise<unknown>
type Sequence = 'ids' | 'ledger_versions' | 'event_ids' | 'delivery_ids' | 'console_key_ids'

const byBoth: [string, Sequence, Draw][] = [
  ['ids of deliveries that a dispatcher passes over', 'delivery_ids', passDeliveryIds],
  ['a delivery', 'delivery_ids', delivery],
  ['a number of an event', 'event_ids', (client) => lockSubscription(client, subscriptionId)],
  ['an event', 'event_ids', event],
  ['a subscription', 'ids', subscribe],
  ['a ping', 'delivery_ids', ping],
  ['a claim of a full export', 'ids', claim],
]

const byOwner: [string, Sequence, Draw][] = [
  ...byBoth,
  ['a third party', 'ids', (client) => insertThirdParty(client, newThirdParty)],
  ['a token', 'ids', (client) => insertToken(client, newToken)],
  ['a key of the console', 'console_key_ids', consoleKey],
  ['a number, where staff skip to the latest event', 'event_ids', enableAtLatest],
  ['ids of an import', 'ids', importedId],
  ['ids that a file keeps', 'ids', (client) => passIds(client, '1', async () => '')],
  ['ids of entries that a file adds', 'ids', addedEntry],
  ['a change of entries', 'ledger_versions', versionAfter(`update entries set comment = 'new' ${place}`)],
  ['a change of accounts', 'ledger_versions', versionAfter(`update accounts set name = 'new' ${place}`)],
  ['a change of a folder', 'ledger_versions', versionAfter(`update folders set name = 'new' where id = 111`)],
  ['a renamed third party', 'ledger_versions', versionAfter(`update third_parties set name = 'other'`)],
  ['a new folder', 'ledger_versions', newFolder],
]

/** More than a server gives out in an hour. */
const leastJump = 4_000_000_000n

async function expectNewEpoch(before: State, from: Sequence, run: () => Promise<unknown>) {
  const drawn = await run()
  const after = await stateOf(owner)
  expect(after.epoch).not.toBe(before.epoch)
  const jumps = (now: string | undefined, name: string) =>
    BigInt(now!) - BigInt(before.sequences[name]!) > leastJump
  const names = Object.keys(before.sequences)
  expect(names.filter((name) => !jumps(after.sequences[name], name))).toEqual([])
  // The value was drawn after the jump, not before it.
  if (typeof drawn === 'string') expect([drawn, jumps(drawn, from)]).toEqual([drawn, true])
}

const asService = (draw: Draw) =>
  draw === subscribe || draw === claim ? inTenant(service, schemaId, draw) : whileDelivering(service, draw)

test('the first act after a promotion begins a new epoch', async () => {
  await expectNewEpoch(former, 'delivery_ids', () => asService(passDeliveryIds))
})

test.each(byBoth)('the role of the service begins a new epoch: %s', async (_, from, draw) => {
  await becomeOther()
  await expectNewEpoch(await stateOf(owner), from, () => asService(draw))
})

test.each(byOwner)('the owner begins a new epoch: %s', async (_, from, draw) => {
  await becomeOther()
  await expectNewEpoch(await stateOf(owner), from, () => inTransaction(owner, draw))
})

test('nothing but draw and draw_several calls nextval', async () => {
  const folder = resolve(import.meta.dirname, '../../../src')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  )
  const calls = files.filter((name) => /nextval\(/.test(readFileSync(join(folder, name), 'utf8')))
  expect(calls).toEqual([])
  const { rows } = await owner.query(
    `select proname as name from pg_proc where pronamespace = 'grandlivre'::regnamespace and prosrc like '%nextval%'
     union all select attrelid::regclass::text from pg_attribute left join pg_attrdef on (adrelid, adnum) = (attrelid, attnum)
     where attrelid in (select oid from pg_class where relnamespace = 'grandlivre'::regnamespace)
       and (attidentity <> '' or pg_get_expr(adbin, adrelid) like '%nextval%') order by 1`,
  )
  expect(rows.map(({ name }) => name)).toEqual(['draw', 'draw_several'])
})

test.each(['epoch', 'server_name', 'epoch_began'])(
  'draw() and draw_several() refuse the sequence %s to the service role',
  async (name) => {
    for (const call of [`draw('grandlivre.${name}')`, `draw_several('grandlivre.${name}', 1)`])
      await expect(service.query(`select grandlivre.${call}`)).rejects.toMatchObject({ code: '42501' })
  },
)

test('writers that start at the same moment begin a single epoch', async () => {
  await becomeOther()
  const holder = await owner.connect()
  await holder.query(`select pg_advisory_lock(hashtextextended('grandlivre gate', 0))`)
  const passing = Array.from({ length: 6 }, () => owner.query('select pass_gate() as epoch'))
  await until(async () => {
    const { rows } = await holder.query(
      `select from pg_stat_activity where wait_event_type = 'Lock' and query like 'select pass_gate()%'`,
    )
    return rows.length === passing.length
  })
  await holder.query('select pg_advisory_unlock_all()')
  holder.release()
  const epochs = new Set((await Promise.all(passing)).map(({ rows }) => rows[0].epoch))
  expect([...epochs]).toEqual([(await stateOf(owner)).epoch])
})

test('a slow first writer delays no other, and its rollback keeps the epoch', async () => {
  await becomeOther()
  const long = await owner.connect()
  await long.query('begin')
  await versionAfter(`update entries set comment = 'long' ${place}`)(long)
  const begun = await stateOf(owner)
  // If the second writer waited for the transaction, the test would end by its time limit.
  const others = await Promise.all([
    owner.query(`select draw('ids') as drawn, pass_gate() as epoch`),
    inTransaction(owner, async (client) => ({ rows: [{ drawn: await event(client), epoch: begun.epoch }] })),
  ])
  expect(others.map(({ rows }) => rows[0].epoch)).toEqual([begun.epoch, begun.epoch])
  await long.query('rollback')
  long.release()
  expect((await stateOf(owner)).epoch).toBe(begun.epoch)
  const { rows } = await owner.query(`select draw('ledger_versions') as drawn, pass_gate() as epoch`)
  expect(rows[0].epoch).toBe(begun.epoch)
  expect(BigInt(rows[0].drawn)).toBeGreaterThan(BigInt(begun.sequences['ledger_versions']!))
})

test('a read-only transaction is refused, and leaves the gate open', async () => {
  await becomeOther()
  const before = await stateOf(owner)
  const reader = await owner.connect()
  await reader.query('begin read only')
  await expect(reader.query(`select draw('ids')`)).rejects.toMatchObject({ code: '25006' })
  await reader.query('rollback')
  expect(await stateOf(owner)).toEqual(before)
  await expectNewEpoch(before, 'ids', () => inTransaction(owner, subscribe))
  reader.release()
})

test('a server that restarts in place keeps its epoch', async () => {
  const before = await stateOf(owner)
  await Promise.all([owner.end(), service.end()])
  await replication.standby.stop()
  await replication.standby.start()
  connectPools()
  const drawn = await inTransaction(owner, subscribe)
  const after = await stateOf(owner)
  expect([after.epoch, after.sequences['delivery_ids']]).toEqual([
    before.epoch,
    before.sequences['delivery_ids'],
  ])
  expect(BigInt(drawn) - BigInt(before.sequences['ids']!)).toBeLessThan(100_000n)
})
