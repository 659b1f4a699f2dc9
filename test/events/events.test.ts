/**
 * The service publishes events in the transaction of the change, and in an order in which a reader misses none.
 */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { rotateSecret, setConnection } from '../../src/auth/third-parties.sql.ts'
import { issueToken, revokeToken, revokeTokensOf } from '../../src/auth/tokens.sql.ts'
import { createOwnerPool, createPool, inTenant, inTransaction, whileDelivering } from '../../src/db/pool.ts'
import { checkEventPayload, eventKinds } from '../../src/events/kinds.ts'
import { publish } from '../../src/events/publish.ts'
import { forTests } from '../support/for-tests.ts'
import { createTenants, credentials, folders } from '../support/ledgers/tenants.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { request, startTestService } from '../support/service.ts'
import { documentEvent } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

const { first, sameFirm, otherTenant } = folders

const database = forTests(() => createTestDatabase())
const staff = forTests(() => createTenants(database.ownerUrl))
/** Pools of the owner of the tables, and of the role that serves requests. */
const owner = forTests(() => createOwnerPool(database.ownerUrl, { max: 8, applicationName: 'test owner' }))
const requests = forTests(() => createPool(database.serviceUrl, { max: 2, applicationName: 'test requests' }))

beforeAll(async () => {
  await staff.client.query(`update grandlivre.firms set siret = '11122233300011' where id = 110`)
  await staff.client.query(
    `update grandlivre.folders set reference = 'F-111', siret = '999888777' where id = 111`,
  )
})

beforeEach(() => staff.client.query('truncate grandlivre.events'))

/** The events of a schema in order, each checked against the registry. */
async function eventsOf(schemaId: string) {
  const { rows } = await staff.client.query(
    `select id, folder_id, name, operation, scope, data from grandlivre.events where schema_id = $1 order by id`,
    [schemaId],
  )
  for (const row of rows) checkEventPayload(row)
  return rows
}

async function briefEventsOf(schemaId: string): Promise<unknown[]> {
  return (await eventsOf(schemaId)).map(({ name, operation, data }) => [name, operation, data])
}

describe('an event', () => {
  const state = { name: 'Ancien', closed: null, axes: [{ code: 'A' }] }
  const right: [string, string, unknown][] = [
    ['connector', 'UPDATE', { id: 1, code: 'ACME', userId: 2 }],
    ['accountingFolder', 'UPDATE', { id: '1', previousState: state, currentState: {} }],
    ['exercice', 'DELETE', { id: '1' }],
    ['accountingLineEntry', 'CREATE', { id: '1' }],
    ['accountingEntryLettering', 'DELETE', { id: '1', paymentType: '' }],
    ['cloudDocument', 'CREATE', { id: 'export_1', status: 'rejected', reason: 'why' }],
    ['document', 'CREATE', { id: '1', kind: 'MF', name: 'a.pdf' }],
    ['portfolio', 'DELETE', { id: '1' }],
    ['thirdParty', 'CREATE', { code: 'ACME' }],
    [
      'adminMessage',
      'VOID',
      { event: 'e', socketMessage: { id: 1, title: '', message: '' }, receivers: ['7'] },
    ],
    ['ledger', 'UPDATE', { cursor: '7.1.aB3-_9xY.AAAAAAAAAAAAAAAAAAAAAA' }],
    ['visitedPage', 'VOID', { path: '/' }],
    ['yousignSignature', 'VOID', { id: '1' }],
    ['taxReturnSent', 'VOID', { idDepot: '1' }],
  ]
  const wrong: [string, string, unknown, RegExp][] = [
    ['Connector', 'CREATE', { id: 1, code: 'A' }, /no kind of event Connector; the kinds are connector, acc/],
    ['toString', 'CREATE', {}, /no kind of event toString/],
    [
      'connector',
      'VOID',
      { id: 1, code: 'A' },
      /connector has the operations CREATE, UPDATE, DELETE, not VOID/,
    ],
    ['connector', 'valueOf', { id: 1, code: 'A' }, /not valueOf/],
    ['accountingFolder', 'DELETE', { id: '1' }, /has the operations CREATE, UPDATE, not DELETE/],
    ['accountingFolder', 'CREATE', { id: '1', currentState: {} }, /data: .*currentState/],
    ['connector', 'CREATE', { id: '1', code: 'A' }, /data\.id: /],
    ['connector', 'CREATE', { id: 2 ** 53, code: 'A' }, /data\.id: /],
    ['accountingLineEntry', 'CREATE', { id: 1 }, /data\.id: /],
    ['document', 'CREATE', { id: '1', kind: 'XX', name: 'n' }, /data\.kind: /],
    ['document', 'CREATE', null, /data: /],
    [
      'adminMessage',
      'VOID',
      { event: 'e', socketMessage: { id: 1 }, receivers: [] },
      /socketMessage\.title: /,
    ],
    [
      'adminMessage',
      'VOID',
      { event: 'e', socketMessage: { id: '1', title: '', message: '' }, receivers: [] },
      /socketMessage\.id: /,
    ],
    ['accountingEntryLettering', 'CREATE', { id: '1', paymentType: null }, /data\.paymentType: /],
    ['cloudDocument', 'CREATE', { id: 'e', status: 'done' }, /data\.status: /],
  ]

  test('can be published for every specified kind, with the specified data', () => {
    expect(right.map(([name]) => name).sort()).toEqual([...eventKinds].sort())
    for (const [name, operation, data] of right)
      expect(checkEventPayload({ name, operation, data })).toEqual({ name, operation, data })
  })

  test.each(wrong)('is refused: %s %s with %j', async (name, operation, data, message) => {
    expect(() => checkEventPayload({ name, operation, data })).toThrow(message)
    // Publishing an invalid event rolls back the change.
    const change = inTransaction(owner, async (client) => {
      await client.query(`update grandlivre.folders set name = 'changed' where id = 111`)
      // biome-ignore lint/suspicious/noExplicitAny: what types would not let through
      await publish(client, '100', [{ name, operation, data } as any])
    })
    await expect(change).rejects.toThrow(message)
    expect(await eventsOf('100')).toEqual([])
    const { rows } = await staff.client.query(`select name from grandlivre.folders where id = 111`)
    expect(rows).toEqual([{ name: 'Folder 111' }])
  })

  test('has its scope, as far as that is known', async () => {
    await inTransaction(owner, (client) =>
      publish(client, '100', [
        { name: 'portfolio', operation: 'CREATE', data: { id: '1' } },
        { name: 'portfolio', operation: 'CREATE', data: { id: '2' }, firmId: '110' },
        { name: 'portfolio', operation: 'CREATE', data: { id: '3' }, folderId: '111' },
        { name: 'portfolio', operation: 'CREATE', data: { id: '4' }, folderId: '112' },
        { name: 'portfolio', operation: 'CREATE', data: { id: '5' }, folderId: '211' },
      ]),
    )
    const firm = { schemaId: 100, firmId: 110, firmSIRET: '11122233300011' }
    const folder = {
      accountingFolderId: 111,
      accountingFolderRef: 'F-111',
      accountingFolderSIRET: '999888777',
    }
    expect((await eventsOf('100')).map(({ scope, folder_id }) => [folder_id, scope])).toEqual([
      [null, { schemaId: 100 }],
      [null, firm],
      ['111', { ...firm, ...folder }],
      ['112', { ...firm, accountingFolderId: 112 }],
      // Another tenant's folder is unknown here.
      ['211', { schemaId: 100 }],
    ])
  })

  test('keeps any string in its data unchanged', async () => {
    const hostile = [
      '"\\\u2028</script>',
      '\u0000\u0001\u001f',
      '\ud800 alone',
      'É€😀',
      "'; drop table events; --",
      '$1',
    ]
    const state = JSON.parse('{"__proto__":{"2":-0,"1":1e21},"constructor":[null]}')
    await inTransaction(owner, (client) =>
      publish(client, '100', [
        ...hostile.map((name) => documentEvent(name)),
        { name: 'accountingFolder', operation: 'UPDATE', data: { id: '1', currentState: state } },
      ]),
    )
    const rows = await eventsOf('100')
    expect(rows.slice(0, -1).map(({ data }) => data.name)).toEqual(hostile)
    expect(JSON.stringify(rows.at(-1).data.currentState)).toBe(JSON.stringify(state))
  })

  test('can be written only by a tenant for itself, and never changed', async () => {
    await inTenant(requests, '100', (client) => publish(client, '100', [documentEvent('mine')]))
    const intrusion = inTenant(requests, '100', (client) =>
      publish(client, '200', [documentEvent('not mine')]),
    )
    await expect(intrusion).rejects.toThrow('row-level security')
    const change = whileDelivering(requests, (client) => client.query(`update events set name = 'x'`))
    await expect(change).rejects.toThrow('permission denied')
    expect((await eventsOf('100')).map(({ data }) => data.name)).toEqual(['mine'])
    expect(await eventsOf('200')).toEqual([])
  })
})

describe('the events of a token', () => {
  test('are published when it is issued, first used and revoked', async () => {
    const secret = await staff.thirdParty('TOKENS')
    const issue = (folderId: string) =>
      inTransaction(owner, (client) =>
        issueToken(client, { thirdPartyCode: 'TOKENS', level: 'api', opened: { ...first, folderId } }),
      )
    const issued = (await issue(first.folderId))!
    const other = (await issue(sameFirm.folderId))!
    const service = await startTestService(database)
    const headers = credentials(issued.token, secret)
    for (let call = 0; call < 3; call += 1)
      expect((await request(`${service.url}/api/v1/key/info`, headers)).status).toBe(200)
    await service.stop()
    expect(await inTransaction(owner, (client) => revokeToken(client, issued.id))).toBeDefined()
    expect(await inTransaction(owner, (client) => revokeToken(client, issued.id))).toBeUndefined()
    const connector = (id: string) => ({ id: Number(id), code: 'TOKENS' })
    expect(await briefEventsOf('100')).toEqual([
      // Published with the first token of the third party in the schema, and not with the second.
      ['thirdParty', 'CREATE', { code: 'TOKENS' }],
      ['connector', 'CREATE', connector(issued.id)],
      ['connector', 'CREATE', connector(other.id)],
      ['connector', 'UPDATE', connector(issued.id)],
      ['connector', 'DELETE', connector(issued.id)],
    ])
    const scopes = (await eventsOf('100')).map(({ folder_id, scope }) => [
      folder_id,
      scope.firmId,
      scope.accountingFolderId,
    ])
    expect(scopes).toEqual([
      [null, undefined, undefined],
      ['111', 110, 111],
      ['112', 110, 112],
      ['111', 110, 111],
      ['111', 110, 111],
    ])
  })

  test('are not published if its third party does not exist', async () => {
    const unknown = { thirdPartyCode: 'NOBODY', level: 'api', opened: first } as const
    expect(await inTransaction(owner, (client) => issueToken(client, unknown))).toBeUndefined()
    expect(await eventsOf('100')).toEqual([])
  })
})

test('a change of a third party is published in each schema in which it holds a token', async () => {
  await staff.thirdParty('PARTY')
  await staff.token('PARTY', 'api', otherTenant)
  await staff.token('PARTY', 'firm', first)
  await staff.token('PARTY', 'api', first)
  const data = { code: 'PARTY' }
  const secret = { hash: Buffer.alloc(32), encrypted: Buffer.from('sealed') }
  await inTransaction(owner, (client) => rotateSecret(client, 'PARTY', secret, 60))
  expect(await inTransaction(owner, (client) => setConnection(client, 'PARTY', 'why'))).toBe(true)
  expect(await inTransaction(owner, (client) => setConnection(client, 'PARTY', 'why'))).toBe(false)
  expect(await inTransaction(owner, (client) => setConnection(client, 'PARTY', null))).toBe(true)
  expect(await inTransaction(owner, (client) => setConnection(client, 'PARTY', null))).toBe(false)
  const expected = ['UPDATE', 'DELETE', 'UPDATE'].map((operation) => ['thirdParty', operation, data])
  expect(await briefEventsOf('100')).toEqual(expected)
  expect(await briefEventsOf('200')).toEqual(expected)

  await inTransaction(owner, (client) => revokeTokensOf(client, 'PARTY'))
  expect((await briefEventsOf('100')).slice(3)).toHaveLength(2)
  expect((await briefEventsOf('200')).slice(3)).toHaveLength(1)
  await inTransaction(owner, (client) => setConnection(client, 'PARTY', 'why'))
  expect(await briefEventsOf('200')).toHaveLength(4)
})

describe('the order of events', () => {
  test('is the order of commits: a reader that follows ids misses none', async () => {
    const seen: string[] = []
    let position = '0'
    let writing = true
    const poll = async () => {
      const { rows } = await owner.query(
        `select id, data->>'name' as name from grandlivre.events where schema_id = 100 and id > $1 order by id`,
        [position],
      )
      seen.push(...rows.map((row) => row.name))
      position = rows.at(-1)?.id ?? position
    }
    const reading = (async () => {
      while (writing) await poll()
      await poll()
    })()
    const names = Array.from({ length: 60 }, (_, index) => `event ${index}`)
    const left = [...names]
    const write = async () => {
      for (let name = left.shift(); name !== undefined; name = left.shift()) {
        const own = name
        await inTransaction(owner, async (client) => {
          await publish(client, '100', [documentEvent(own)])
          // Gives other writers time to commit between the id and the commit of this one.
          await delay(Math.random() * 8)
        })
      }
    }
    await Promise.all([write(), write(), write(), write(), write()])
    writing = false
    await reading
    expect([...seen].sort()).toEqual([...names].sort())
  })

  test('within a transaction is the order of publishing', async () => {
    const names = Array.from({ length: 500 }, (_, index) => `event ${index}`)
    await inTransaction(owner, (client) =>
      publish(
        client,
        '100',
        names.map((name) => documentEvent(name)),
      ),
    )
    expect((await eventsOf('100')).map(({ data }) => data.name)).toEqual(names)
  })

  test('is kept in each schema without waiting for other schemas', async () => {
    await inTransaction(owner, async (client) => {
      await publish(client, '100', [documentEvent('one')])
      await inTransaction(owner, (other) => publish(other, '200', [documentEvent('two')]))
    })
    expect([(await eventsOf('100')).length, (await eventsOf('200')).length]).toEqual([1, 1])
  })
})

test('listeners of a schema are notified when its events are committed, and not after a rollback', async () => {
  const listener = new pg.Client({ connectionString: database.serviceUrl })
  await listener.connect()
  const notified: string[] = []
  listener.on('notification', ({ payload }) => notified.push(payload!))
  await listener.query('listen grandlivre_events')
  const failing = inTransaction(owner, async (client) => {
    await publish(client, '200', [documentEvent('undone')])
    throw new Error('undone')
  })
  await expect(failing).rejects.toThrow('undone')
  await inTransaction(owner, async (client) => {
    await publish(client, '100', [documentEvent('one'), documentEvent('two')])
    await listener.query('select 1')
    expect(notified).toEqual([])
  })
  await until(() => notified.length > 0)
  expect(notified).toEqual(['100'])
  await listener.end()
})
