import { beforeAll, beforeEach, expect, test } from 'vitest'
import { forTests } from '../../support/for-tests.ts'
import { fillTenant, folderId, insertFolder, ledgerInserts } from '../../support/ledgers/small-ledger.ts'
import { connect, createTestDatabase } from '../../support/servers/database.ts'

const schemaId = '1000'
const otherFolderId = '2'

const database = forTests(createTestDatabase)
const client = forTests(() => connect(database.ownerUrl))

beforeAll(async () => {
  await fillTenant(client, schemaId)
  await insertFolder(client, schemaId, otherFolderId)
  await client.query(ledgerInserts['accounts']!(schemaId, 2))
  await client.query('delete from events')
})

beforeEach(async () => {
  await client.query('rollback')
  await client.query('begin')
})

/** The rows that the statement adds to the log. */
async function logged(statement: string): Promise<string[]> {
  const { rows: before } = await client.query<{ last: string }>(
    'select coalesce(max(version), 0) as last from ledger_changes',
  )
  const { rowCount } = await client.query(statement)
  expect(rowCount, statement).toBeGreaterThan(0)
  const { rows } = await client.query<{ row: string }>(
    `select kind || ' ' || ids || case when c.version = f.ledger_version then '' else ' not current' end as row
     from ledger_changes c join folders f on (f.schema_id, f.id) = (c.schema_id, c.folder_id)
     where version > $1 order by version`,
    [before[0]!.last],
  )
  return rows.map(({ row }) => row)
}

test('entries and movements are logged as entries, with the version of their statement', async () => {
  expect(await logged(ledgerInserts['entries']!(schemaId, 8))).toEqual([
    'entries {[8,9)} not current',
    'entries {[8,9)}',
  ])
  expect(await logged('update entries set comment = null where id = 8')).toEqual(['entries {[8,9)}'])
  expect(await logged(ledgerInserts['movements']!(schemaId, 9).replace(/;?$/, ''))).toEqual([
    'entries {[1,2)}',
  ])
  expect(await logged('update movements set entry_id = 8 where id = 9')).toEqual(['entries {[1,2),[8,9)}'])
  expect(await logged('delete from entries where id = 8')).toEqual([
    'entries {[8,9)} not current',
    'entries {[8,9)}',
  ])
})

test.each([
  ['accounts', `update accounts set name = 'x' where id = 2`, ['accounts {[2,3)}']],
  ['accounts', `delete from accounts where id = 2`, ['accounts {[2,3)}']],
  ['journals', `update journals set name = 'x' where id = 1`, ['journals {[1,2)}']],
  ['payments', `update payments set code = 'CHQ' where id = 1`, ['payments {[1,2)}']],
  ['axes', `update axes set name = 'x' where id = 1`, ['axes {[1,2)}']],
  ['sections', `update sections set name = 'x' where id = 1`, ['sections {[1,2)}']],
  ['sections', ledgerInserts['sections']!(schemaId, 4), ['sections {[4,5)}']],
  ['axes', ledgerInserts['axes']!(schemaId, 4), ['axes {[4,5)}']],
])('a change of %s is logged with the kind %s', async (_table, statement, rows) => {
  expect(await logged(statement)).toEqual(rows)
})

test.each([
  ledgerInserts['accounts']!(schemaId, 5),
  ledgerInserts['journals']!(schemaId, 5),
  ledgerInserts['payments']!(schemaId, 5),
  `update companies set ceo = 'x'`,
  `update banks set is_default = true`,
  `update exercices set closed_at = now()`,
  `update folders set name = 'x' where id = ${folderId}`,
])('a change that no exported line shows is not logged: %s', async (statement) => {
  expect(await logged(statement)).toEqual([])
})

test('renaming a third party is logged in every folder with its entries', async () => {
  await client.query(`update entries set third_party_id = 1, source = 'API' where id = 1`)
  expect(await logged(`update third_parties set name = 'x' where id = 1`)).toEqual(['third_parties {[1,2)}'])
  expect(await logged(`update third_parties set disconnected_at = now(), disconnected_reason = 'x'`)).toEqual(
    [],
  )
})

test.each([
  ['up to 1,000 ranges stay exact', 'select 2 * n from generate_series(1, 1000) n', 1000, 1000],
  ['a single id between two is bridged', 'select 2 * n from generate_series(1, 1001) n', 1, 2001],
  ['two ids between are not', 'select 3 * n from generate_series(1, 1001) n', 1001, 1001],
  ['many consecutive ids stay exact', 'select n from generate_series(5, 200004) n', 1, 200_000],
  ['above 100,000 ids, blocks', 'select 700 * n from generate_series(0, 100000) n', 1, 70_000_640],
])('ranges are coarsened: %s', async (_what, ids, ranges, held) => {
  const { rows } = await client.query(
    `with touched as materialized (${ids}), t as (select range_agg(int8range(x, x + 1)) as exact from touched as t (x))
     select (select count(*)::int from unnest(coarsened(exact))) as ranges,
            (select sum(upper(r) - lower(r))::int from unnest(coarsened(exact)) r) as held,
            exact <@ coarsened(exact) as whole from t`,
  )
  expect(rows[0]).toEqual({ ranges, held, whole: true })
})

test('entries close together become one range if at least half of its entries were touched', async () => {
  await client.query(
    `insert into entries (schema_id, folder_id, id, exercice_id, journal_id, date, accounted_at, created_at, source, currency)
     select ${schemaId}, ${folderId}, 1000 + 7 * n, 1, 1, '2024-03-01', '2024-03-01', now(), 'E', 'EUR'
     from generate_series(0, 399) n`,
  )
  const touch = (condition: string) =>
    logged(`update entries set comment = 'x' where id >= 1000 and ${condition}`)
  // 100 of 199, 100 of 298, 99 of 99.
  expect(await touch('id < 1000 + 7 * 200 and id % 2 = 0')).toEqual(['entries {[1000,2387)}'])
  const [apart] = await touch('id < 1000 + 7 * 300 and (id - 1000) / 7 % 3 = 0')
  expect(apart?.split('),')).toHaveLength(100)
  const [few] = await touch('id < 1000 + 7 * 99')
  expect(few?.split('),')).toHaveLength(99)
})

test('a cursor contains a version, and reading a refused cursor gives the reason', async () => {
  await client.query(`set local grandlivre.schema_id = '${schemaId}'`)
  const one = async <T>(sql: string): Promise<T> => Object.values((await client.query(sql)).rows[0]!)[0] as T
  const read = async (cursor: string, folder = folderId, rendering = 'r1') =>
    (
      await client.query('select version, refusal from read_ledger_cursor($1, $2, $3, $4)', [
        cursor,
        schemaId,
        folder,
        rendering,
      ])
    ).rows[0]
  const version = await one<string>(`select ledger_version from folders where id = ${folderId}`)
  const of = (at: string) => one<string>(`select ledger_cursor(${schemaId}, ${folderId}, ${at}, 'r1')`)
  const cursor = await of(version)
  expect(cursor).toMatch(/^[A-Za-z0-9._-]{1,64}$/)
  expect(await read(cursor)).toEqual({ version, refusal: null })
  expect(await read(cursor, otherFolderId)).toMatchObject({ refusal: 'unknown' })
  const last = cursor.at(-1) === 'A' ? 'B' : 'A'
  for (const forged of [
    '',
    'x',
    cursor.slice(0, -1) + last,
    cursor.replace(/^\d+/, '1'),
    `${cursor}x`,
    cursor.slice(1),
  ])
    expect(await read(forged), forged).toMatchObject({ refusal: 'unknown' })
  expect(await read(await of(`${version} + 1`))).toMatchObject({ refusal: 'later' })
  expect(await read(cursor, folderId, 'r2')).toMatchObject({ refusal: 'rendering' })
  await client.query(
    `update entries set comment = 'x' where id = 1; update ledger_changes set logged_at = logged_at - interval '2 days'; select forget_ledger_changes(now(), 100)`,
  )
  expect(await read(cursor)).toMatchObject({ refusal: 'forgotten' })
  const now = await of((await one<string>(`select ledger_version from folders where id = ${folderId}`))!)
  expect(await read(now)).toMatchObject({ refusal: null })
  await client.query('update service_state set epoch = epoch + 1')
  expect(await read(now)).toMatchObject({ refusal: 'epoch' })
  const longest = await one<string>(`select ledger_cursor(1, 1, 999999999999999999, 'rrrrrrrr')`)
  expect(longest.length).toBeLessThanOrEqual(64)
})
