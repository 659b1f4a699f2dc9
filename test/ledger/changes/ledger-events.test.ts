/** The `ledger` events that the database publishes, whatever program changes a ledger (docs/spec/changes.md#the-log). */
import type pg from 'pg'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { publish } from '../../../src/events/publish.ts'
import { forTests } from '../../support/for-tests.ts'
import { fillTenant, folderId, insertFolder, ledgerInserts } from '../../support/ledgers/small-ledger.ts'
import { connect, createTestDatabase } from '../../support/servers/database.ts'
import { documentEvent } from '../../support/stages/webhooks.ts'
import { until } from '../../support/until.ts'

const one = '1000'
const two = '2000'
const otherFolderId = '2'

const database = forTests(createTestDatabase)
/** Two connections that change ledgers, and one that reads. */
const writer = forTests(() => connect(database.ownerUrl))
const rival = forTests(() => connect(database.ownerUrl))
const observer = forTests(() => connect(database.ownerUrl))

beforeAll(async () => {
  for (const schemaId of [one, two]) {
    await fillTenant(writer, schemaId)
    await insertFolder(writer, schemaId, otherFolderId)
    for (const table of ['journals', 'exercices', 'entries'])
      await writer.query(ledgerInserts[table]!(schemaId, 1, otherFolderId))
  }
})

beforeEach(async () => {
  for (const client of [writer, rival, observer]) await client.query('rollback')
  await observer.query('truncate events')
})

let changes = 0

/** A statement that changes an entry of the folder. */
const change = (schemaId: string, folder = folderId) =>
  `update entries set comment = 'change ${++changes}' where schema_id = ${schemaId} and folder_id = ${folder} and id = 1`

/**
 * The schema and folder of each `ledger` event, and the kind of other events. @throws if a cursor is not that of the
 * folder
 */
async function published(): Promise<string[]> {
  const { rows } = await observer.query(
    `select e.schema_id, e.folder_id, e.name, e.operation, e.data,
       ledger_cursor(f.schema_id, f.id, f.ledger_version, s.rendering) as cursor
     from events e cross join service_state s
     left join folders f on f.schema_id = e.schema_id and f.id = e.folder_id order by e.id`,
  )
  return rows.map(({ schema_id, folder_id, name, operation, data, cursor }) => {
    if (name !== 'ledger') return name
    expect([operation, data]).toEqual(['UPDATE', { cursor }])
    return `${schema_id} ${folder_id}`
  })
}

async function waits(client: pg.Client): Promise<boolean> {
  const { processID } = client as unknown as { processID: number }
  const { rows } = await observer.query('select wait_event_type from pg_stat_activity where pid = $1', [
    processID,
  ])
  return rows[0]!.wait_event_type === 'Lock'
}

test('comes after other events of the same transaction, even if the ledger changes after them', async () => {
  await writer.query('begin')
  await writer.query(change(one))
  await publish(writer, one, [documentEvent('a')])
  await writer.query(change(one))
  await publish(writer, one, [documentEvent('b')])
  expect(await published()).toEqual([])
  await writer.query('commit')
  expect(await published()).toEqual(['document', 'document', '1000 1'])
})

test('is published once per transaction and folder, for any statements in any schemas', async () => {
  await writer.query('begin')
  for (const [schemaId, folder] of [
    [two, '2'],
    [one, '1'],
    [two, '2'],
    [one, '2'],
    [one, '1'],
    [two, '1'],
  ] as const)
    await writer.query(change(schemaId, folder))
  await writer.query(`update folders set name = 'x' where id = 2`)
  await writer.query('commit')
  expect((await published()).sort()).toEqual(['1000 1', '1000 2', '2000 1', '2000 2'])
})

test.each([
  ['', ['begin', change(one), 'rollback'], []],
  [' to a savepoint', ['begin', 'savepoint s', change(one), 'rollback to s', 'commit'], []],
  [
    ' to a savepoint, of the later change',
    ['begin', change(one), 'savepoint s', change(one), change(two), 'rollback to s', 'commit'],
    ['1000 1'],
  ],
  [
    ' to a savepoint, of the earlier change',
    [
      'begin',
      'savepoint s',
      change(one),
      change(two),
      'rollback to s',
      change(two),
      change(one, '2'),
      'commit',
    ],
    ['2000 1', '1000 2'],
  ],
  [
    ' to a savepoint, between released ones',
    [
      'begin',
      ...['savepoint s', change(one), 'release s', change(one), 'savepoint s', change(one), 'rollback to s'],
      ...[
        'savepoint s',
        `update folders set name = 'y' where schema_id = 1000 and id = 2`,
        'release s',
        'commit',
      ],
    ],
    ['1000 1', '1000 2'],
  ],
])('is not published for changes that were rolled back%s', async (_to, statements, expected) => {
  for (const statement of statements) await writer.query(statement)
  expect(await published()).toEqual(expected)
})

test('a later transaction of the same connection is independent of an earlier one', async () => {
  for (const end of ['commit', 'rollback']) {
    await observer.query('truncate events')
    await writer.query('begin')
    await writer.query(change(two))
    await writer.query(change(one))
    await writer.query(end)
    await writer.query(change(one))
    // Restored, as only its owner could: the version is lower than the one noted before.
    await writer.query('update folders set ledger_version = 3 where schema_id = 1000 and id = 1')
    const { rows } = await observer.query(
      `select data->>'cursor' as cursor from events where name = 'ledger' order by id`,
    )
    expect(rows.at(-1).cursor).toMatch(/^3\./)
    expect(rows).toHaveLength(end === 'commit' ? 4 : 2)
  }
})

test('transactions over two schemas that change them in opposite order do not block each other', async () => {
  await writer.query('begin')
  await writer.query(change(one))
  await writer.query(change(two))
  await rival.query('begin')
  await rival.query(change(two, '2'))
  await rival.query(change(one, '2'))
  await observer.query(`begin; select lock_events(${one}), lock_events(${two})`)
  const commits = [writer, rival].map((client) => client.query('commit'))
  await until(async () => (await waits(writer)) && (await waits(rival)))
  await observer.query('commit')
  await Promise.all(commits)
  expect((await published()).sort()).toEqual(['1000 1', '1000 2', '2000 1', '2000 2'])
})

test('a writer waits for the commit of a writer of another folder in its schema, not for its other statements', async () => {
  await writer.query('begin')
  await writer.query(change(one))
  await rival.query(change(one, '2'))
  expect(await published()).toEqual(['1000 2'])
  // As at the beginning of its commit.
  await writer.query('set constraints all immediate')
  await rival.query(change(two))
  const waiting = rival.query(change(one, '2'))
  await until(() => waits(rival))
  await writer.query('commit')
  await waiting
  const { rows } = await observer.query(
    'select schema_id, folder_id from events where schema_id = 1000 order by id',
  )
  expect(rows.map(({ folder_id }) => folder_id)).toEqual(['2', '1', '2'])
})

test('renaming a third party publishes one event in each folder with its entries, including entries being imported', async () => {
  const ofPartner = `update entries set third_party_id = 1, source = 'API' where id = 1`
  await writer.query(`${ofPartner} and folder_id = 1`)
  await observer.query('truncate events')
  await writer.query('begin')
  await writer.query(`${ofPartner} and folder_id = 2 and schema_id = ${one}`)
  const renaming = rival.query(`update third_parties set name = name || 'x' where id = 1`)
  await until(() => waits(rival))
  expect(await published()).toEqual([])
  await writer.query('commit')
  await renaming
  const { rows } = await observer.query('select schema_id, folder_id from events order by id')
  expect(rows.map(({ schema_id, folder_id }) => `${schema_id} ${folder_id}`)).toEqual([
    '1000 2',
    ...['1000 1', '1000 2', '2000 1'],
  ])
})

test('waiting requests are notified once per folder, and not of changes that were rolled back', async () => {
  const notified: string[] = []
  observer.on('notification', ({ payload }) => notified.push(payload!))
  await observer.query('listen grandlivre_ledgers')
  await writer.query('begin')
  await writer.query(change(one))
  await writer.query('rollback')
  await writer.query('begin')
  for (const folder of ['1', '2', '1']) await writer.query(change(two, folder))
  await writer.query('commit')
  await until(async () => {
    await observer.query('select 1')
    return notified.length > 0
  })
  await observer.query('unlisten *')
  expect(notified.sort()).toEqual(['1', '2'])
})
