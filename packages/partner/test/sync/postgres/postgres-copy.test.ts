/** A copy in PostgreSQL: the bytes of rows come back, and a ledger that is not whole stays out. */
import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { expect, test } from 'vitest'
import { forTests } from '../../../../../test/support/for-tests.ts'
import { createTestDatabase } from '../../../../../test/support/servers/database.ts'
import { type LedgerTableName, ledgerTables } from '../../../../contract/src/ledger-tables.ts'
import type { Copy } from '../../../src/sync/copy.ts'
import { openPostgres } from '../../../src/sync/postgres/postgres-copy.sql.ts'
import { lineOf, linesIn } from '../../support/sync/rows.ts'

const database = forTests(() => createTestDatabase({ template: 'template1' }))
const staff = forTests(async () => {
  const client = new pg.Client({ connectionString: database.ownerUrl })
  await client.connect()
  // Settings that a database of others may have.
  const name = new URL(database.ownerUrl).pathname.slice(1)
  await client.query(
    `alter database ${name} set datestyle to 'German'; alter database ${name} set timezone to 'Asia/Tokyo'`,
  )
  return client
})

const diary = { firm_id: '1', firm_name: 'Cabinet', cursor: 'c1', synced_at: '2026-01-31T10:00:00.000Z' }
let schemas = 0

function addressOf(schema: string): string {
  const url = new URL(database.ownerUrl)
  url.searchParams.set('schema', schema)
  return url.href
}

async function newCopy(): Promise<{ copy: Copy; schema: string }> {
  schemas += 1
  return { copy: await openPostgres(addressOf(`copy_${schemas}`)), schema: `copy_${schemas}` }
}

const read = async (copy: Copy, society: string, table: LedgerTableName = 'movements') =>
  String(await linesIn(copy, society, table))

async function fill(copy: Copy, society: string, tables: Partial<Record<LedgerTableName, string>>) {
  await copy.note([society], { firm_id: '1', firm_name: 'Cabinet' })
  await copy.begin(society)
  for (const [name, lines] of Object.entries({
    folders: lineOf('folders', { society_id: society }),
    ...tables,
  })) {
    await copy.table(name as LedgerTableName)
    if (lines !== '') await copy.rows(Buffer.from(lines))
  }
  await copy.commit(diary, null)
}

const nasty = [
  '',
  ' ',
  '\\\\N',
  '\\\\.',
  'tab\\tline\\nreturn\\rbackslash\\\\ \\b\\f\\v',
  `'quotes' "both" ; -- {`,
  'é€𝄞\u0301\u202e',
  '\u0001\u007f\u00a0\u2028',
  'x'.repeat(600_000),
]

test('gives back the bytes of every table, even for nasty texts', async () => {
  const { copy } = await newCopy()
  const movements = nasty
    .map((text, i) =>
      lineOf('movements', {
        ...{
          entry_id: `${i}`,
          movement_id: `${i}`,
          entry_date: '0999-12-31',
          created_at: '2026-01-31 23:59:59.123+00',
        },
        ...{
          draft: 'f',
          debit: '-0.01',
          credit: '9999999999999999.99',
          currency_rate: '1.100000',
          description: text,
        },
        ...{
          journal_name: text,
          analytics: '[{"axis_code":  "a\\\\tb","amount":1.10}]',
          partner_metadata: '{"b":1,"a":1,"a":2}',
        },
      }),
    )
    .join('')
  const accounts = lineOf('accounts', {
    ...{ account_id: '9007199254740993', account_number: '411', closed: 't' },
    details: '{"company": {"name":"Dupont \\\\"& fils\\\\"","SIREN":"123456789"}}',
  })
  const folders = lineOf('folders', { society_id: '5', name: 'Dupont', capital: '0.00', details: '{ }' })
  const exercices = lineOf('exercices', { exercice_id: '1', start_date: '2026-01-01', months: '12' })
  await fill(copy, '5', { folders, exercices, accounts, movements })
  await fill(copy, '6', { movements: lineOf('movements', { entry_id: '1', movement_id: '1' }) })
  expect(await read(copy, '5', 'folders')).toBe(folders)
  expect(await read(copy, '5', 'exercices')).toBe(exercices)
  expect(await read(copy, '5', 'accounts')).toBe(accounts)
  const hash = (text: string) => createHash('sha256').update(text).digest('hex')
  expect(hash(await read(copy, '5'))).toBe(hash(movements))
  await copy.close()
})

test('accepts many rows in buffers of any size, which may be reused at once', async () => {
  const { copy } = await newCopy()
  const lines = Array.from({ length: 30_000 }, (_, i) =>
    lineOf('movements', {
      entry_id: `${i}`,
      movement_id: `${i}`,
      description: `row ${i}`.padEnd(i % 700, '.'),
    }),
  )
  await copy.note(['7'], { firm_id: '1' })
  await copy.begin('7')
  await copy.table('folders')
  await copy.rows(Buffer.from(lineOf('folders', { society_id: '7' })))
  await copy.table('movements')
  const room = Buffer.alloc(8 * 1024 * 1024)
  for (let at = 0; at < lines.length; at += 5_000) {
    const length = room.write(lines.slice(at, at + 5_000).join(''))
    await copy.rows(room.subarray(0, length))
    room.fill(0)
  }
  await copy.commit(diary, {
    at: '2026-01-31T10:00:00.000Z',
    cursor: 'c1',
    entries: [['0', '9']],
    rows_before: 0,
    rows_after: 30_000,
  })
  expect(await read(copy, '7')).toBe(lines.join(''))
  // A reader that stops early leaves a usable connection.
  for await (const chunk of copy.lines('7', 'movements')) {
    expect(chunk.length).toBeGreaterThan(0)
    break
  }
  expect(await read(copy, '7')).toBe(lines.join(''))
  expect(await copy.folders()).toMatchObject([{ society: '7', ...diary, gone_at: null, table_digests: {} }])
  await copy.begin('7')
  expect(
    await copy.dropEntries([
      ['0', '9'],
      ['100', '199'],
    ]),
  ).toBe(110)
  await copy.rollback()
  expect(await read(copy, '7')).toBe(lines.join(''))
  await copy.close()
})

test('rolls back a ledger with a line that PostgreSQL refuses or takes for the end, and stays usable', async () => {
  const { copy } = await newCopy()
  const good = lineOf('movements', { entry_id: '1', movement_id: '1' })
  await fill(copy, '8', { movements: good })
  const wrong: [lines: string, message: RegExp][] = [
    [`${good}${lineOf('movements', { entry_id: '2', movement_id: '2', debit: 'a' })}`, /numeric/],
    ['2\t\\N\n', /missing data/],
    [
      `${lineOf('movements', { entry_id: '2', movement_id: '2' })}\\.\n${good}`,
      /took 1 rows|end-of-copy|marker/,
    ],
    [good.replace('1', '\\x00'), /encoding|invalid/],
  ]
  for (const [lines, message] of wrong) {
    await copy.begin('8')
    await copy.dropEntries([['0', '9']])
    await copy.table('movements')
    const write = async () => {
      for (let i = 0; i < 3; i += 1) await copy.rows(Buffer.from(lines))
      await copy.commit(diary, null)
    }
    await expect(write(), lines).rejects.toThrow(message)
    await copy.rollback()
    expect(await read(copy, '8'), lines).toBe(good)
  }
  // Rolls back the row of another folder, and rows that stopped in the middle.
  await copy.begin('8')
  await copy.table('folders')
  await copy.rows(Buffer.from(lineOf('folders', { society_id: '99' })))
  await expect(copy.commit(diary, null)).rejects.toThrow('without its own row')
  await copy.rollback()
  await copy.begin('8')
  await copy.table('movements')
  await copy.rows(Buffer.from(lineOf('movements', { entry_id: '3', movement_id: '3' })))
  await copy.rollback()
  expect(await read(copy, '8')).toBe(good)
  expect(await copy.folders()).toHaveLength(1)
  await copy.close()
})

test('rolls back a ledger if PostgreSQL refuses the statement for its lines, and stays usable', async () => {
  const { copy, schema } = await newCopy()
  const line = lineOf('movements', { entry_id: '1', movement_id: '1' })
  await fill(copy, '8', { movements: line })
  await staff.query(`alter table ${schema}.movements rename description to text`)
  await expect(fill(copy, '8', { movements: line.repeat(50_000) })).rejects.toThrow('column "description"')
  await copy.rollback()
  await staff.query(`alter table ${schema}.movements rename text to description`)
  expect(await read(copy, '8')).toBe(line)
  await copy.close()
})

test('says that the connection was lost between two statements', async () => {
  const { copy } = await newCopy()
  await copy.begin('8')
  await copy.table('movements')
  const { rowCount } = await staff.query(
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity
     where datname = current_database() and application_name = 'grandlivre sync'`,
  )
  expect(rowCount).toBe(1)
  await delay(100)
  const line = lineOf('movements', { entry_id: '1', movement_id: '1' })
  await expect(copy.rows(Buffer.from(line))).rejects.toThrow('connection')
  await copy.rollback()
  await copy.close()
})

test('finds and removes rows of folders that are not in the copy', async () => {
  const { copy, schema } = await newCopy()
  await fill(copy, '5', { movements: lineOf('movements', { entry_id: '1', movement_id: '1' }) })
  await staff.query(
    `insert into ${schema}.movements (society_id, entry_id, movement_id) values (4, 1, 1), (6, 1, 1);
     insert into ${schema}.vats (society_id, vat_id) values (77, 1)`,
  )
  expect(await copy.strays()).toEqual(['4', '6', '77'])
  for (const society of ['4', '6', '77']) await copy.remove(society)
  expect(await copy.strays()).toEqual([])
  expect(await read(copy, '5')).not.toBe('')
  await copy.close()
})

test('keeps a firm locked until the copy is closed or its process has ended', async () => {
  const { copy, schema } = await newCopy()
  const other = await openPostgres(addressOf(schema))
  await copy.lock(['1', '2'])
  await copy.lock(['2'])
  await expect(other.lock(['2'])).rejects.toMatchObject({ code: 'COPY-LOCKED' })
  await other.lock(['3'])
  // The system does this for a process that has ended.
  await staff.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name = 'grandlivre sync'`,
  )
  await copy.close().catch(() => {})
  await other.close().catch(() => {})
  const third = await openPostgres(addressOf(schema))
  await third.lock(['1', '2', '3'])
  await third.close()
})

test('has a comment on every table, column and view', async () => {
  const { copy, schema } = await newCopy()
  const { rows } = await staff.query(
    `select c.relname || coalesce('.' || a.attname, '') as name, c.relkind, d.description
     from pg_class c
     left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and c.relkind = 'r'
     left join pg_description d on d.objoid = c.oid and d.objsubid = coalesce(a.attnum, 0)
     where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'v')`,
    [schema],
  )
  expect(rows.length).toBeGreaterThan(100)
  expect(rows.filter(({ description }) => !description).map(({ name }) => name)).toEqual([])
  expect(rows.find(({ name }) => name === 'movements.debit')!.description).toBe(
    ledgerTables.movements.columns.find(({ name }) => name === 'debit')!.description,
  )
  await copy.close()
})

test('refuses a former layout, foreign tables and a missing copy, and rebuilds a former layout on request', async () => {
  await staff.query(`create schema former; create table former.sync_state (area text primary key, state text not null);
    create table former.movement_rows (movement_id bigint); create table former.entry_lines (line bytea); create table former.accounts (account_id bigint);
    create view former.movements as select * from former.movement_rows;
    create table former.mine as select 1 as one; create view former.open_items as select * from former.movements;
    create view public.theirs as select * from former.movements; create view public.others as select * from public.theirs;
    create schema others; create table others.things (id bigint)`)
  await expect(openPostgres(addressOf('former'))).rejects.toMatchObject({
    code: 'COPY-REFUSED',
    remedy: expect.stringContaining('grandlivre sync --again'),
  })
  await expect(openPostgres(addressOf('others'))).rejects.toThrow('holds something else')
  await expect(openPostgres(addressOf('nowhere'), { isThere: true })).rejects.toThrow('There is no copy')
  await expect(openPostgres(addressOf('A;b'))).rejects.toThrow('cannot be the schema')
  // Only the copy's own views are dropped. If other views depend on them, the error names those, and nothing is dropped.
  await expect(openPostgres(addressOf('former'), { again: true })).rejects.toMatchObject({
    code: 'COPY-REFUSED',
    message: expect.stringMatching(
      /: view public.theirs depends on view movements; view public.others depends on view public.theirs$/,
    ),
    remedy: 'Drop these, rebuild the copy, and create them again.',
  })
  expect((await staff.query(`select count(*) from former.open_items`)).rowCount).toBe(1)
  await staff.query('drop view public.theirs cascade')
  const copy = await openPostgres(addressOf('former'), { again: true })
  expect(copy.service).toBeUndefined()
  await copy.adopt('https://ledger.example')
  await copy.close()
  const same = await openPostgres(addressOf('former'), { isThere: true })
  expect(same.service).toBe('https://ledger.example')
  await expect(same.adopt('https://other.example')).rejects.toMatchObject({ code: 'COPY-REFUSED' })
  await same.close()
  expect((await staff.query('select one from former.mine')).rows).toEqual([{ one: 1 }])
  await staff.query('update former.grandlivre_copy set layout = 99')
  await expect(openPostgres(addressOf('former'))).rejects.toThrow('another layout')
})
