/** The changed entries according to the log. For each kind of change, the tables are read independently to compare. */
import { beforeAll, expect, test } from 'vitest'
import { readChangedEntries, type WatchedEntries } from '../../../src/ledger/changes/changed-entries.sql.ts'
import {
  everyEntry,
  mergedRanges,
  multirangeLiteral,
  readMultirange,
} from '../../../src/ledger/changes/entry-ranges.ts'
import { forTests } from '../../support/for-tests.ts'
import { fillFolders } from '../../support/ledgers/ledger.ts'
import { createTenants, folders } from '../../support/ledgers/tenants.ts'
import { connect, createTestDatabase } from '../../support/servers/database.ts'

const database = forTests(createTestDatabase)
const staff = forTests(() => createTenants(database.ownerUrl))
const client = forTests(() => connect(database.ownerUrl))

const { schemaId, folderId } = folders.first
const ofFolder = `schema_id = ${schemaId} and folder_id = ${folderId}`

beforeAll(async () => {
  const { first, sameFirm } = folders
  await fillFolders(staff, { first, sameFirm })
})

const watched: WatchedEntries = { schemaId, folderId, exerciceIds: ['11', '12'], among: [] }

async function idsOf(sql: string): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(sql)
  return rows.map(({ id }) => id)
}

/** Runs statements, and reads the changes since. @returns the ids of the entries in the ranges */
async function changes(statements: string[], of: WatchedEntries = watched): Promise<string[]> {
  await client.query('begin')
  try {
    const { rows } = await client.query(`select ledger_version from folders where id = ${folderId}`)
    for (const statement of statements) await client.query(statement)
    const ranges = await readChangedEntries(client, of, rows[0].ledger_version)
    expect(mergedRanges(ranges)).toEqual(ranges)
    return await idsOf(
      `select id from entries where ${ofFolder} and id::bigint <@ ${multirangeLiteral(ranges)} order by id`,
    )
  } finally {
    await client.query('rollback')
  }
}

const showing = (condition: string) =>
  idsOf(`select distinct e.id from entries e left join movements m on (m.schema_id, m.folder_id, m.entry_id)
      = (e.schema_id, e.folder_id, e.id)
    where e.schema_id = ${schemaId} and e.folder_id = ${folderId} and e.exercice_id in (11, 12) and ${condition} order by 1`)

/** Sections of the ledger are in shares as {section, amount, rate, ...}; see ledger.ts. */
const shows = (sections: number[]) =>
  `(${[1, 4, 7].map((place) => `coalesce(m.shares[${place}] in (${sections}), false)`).join(' or ')})`

test.each([
  ['an account', `update accounts set name = 'x' where ${ofFolder} and id = 103`, 'm.account_id = 103'],
  [
    'accounts',
    `update accounts set name = 'x' where ${ofFolder} and id in (103, 105)`,
    'm.account_id in (103, 105)',
  ],
  ['a journal', `update journals set name = 'x' where ${ofFolder} and id = 33`, 'e.journal_id = 33'],
  ['a payment', `update payments set code = 'x' where ${ofFolder} and id = 52`, 'm.payment_id = 52'],
  ['a section', `update sections set name = 'x' where ${ofFolder} and id = 74`, shows([74])],
  ['an axis', `update axes set name = 'x' where ${ofFolder} and id = 61`, shows([71, 72, 73])],
  ['a deleted section', `delete from sections where ${ofFolder} and id = 75`, shows([75])],
  [
    'a new section that existing shares name',
    `insert into sections (schema_id, folder_id, id, axis_id, code, name) values (${schemaId}, ${folderId}, 10, 61, 'N', 'N')`,
    shows([10]),
  ],
  ['a partner', `update third_parties set name = 'x'`, `e.third_party_id is not null`],
])(
  'a change of %s changes the entries of the exercices that show it',
  async (_what, statement, condition) => {
    const expected = await showing(condition)
    expect(await changes([statement])).toEqual(expected)
    const drafts = { ...watched, among: ['e.validated_at is null'] }
    expect(await changes([statement], drafts)).toEqual(
      await showing(`${condition} and e.validated_at is null`),
    )
  },
)

test('an amount or rate that equals the id of a section is not taken for the section', async () => {
  expect(
    await changes([
      `insert into sections (schema_id, folder_id, id, axis_id, code, name)
    values (${schemaId}, ${folderId}, 26444, 61, 'N', 'N'), (${schemaId}, ${folderId}, 1000000, 61, 'M', 'M')`,
    ]),
  ).toEqual([])
})

test('entries named in the log are included whatever their exercice, and merged with the others', async () => {
  const [elsewhere] = await idsOf(`select id from entries where ${ofFolder} and exercice_id = 13 limit 1`)
  const journal = await showing('e.journal_id = 33')
  const found = await changes([
    `update entries set comment = 'x' where ${ofFolder} and id = ${elsewhere}`,
    `update journals set name = 'x' where ${ofFolder} and id = 33`,
  ])
  expect(found).toEqual([...journal, elsewhere!].sort((a, b) => Number(a) - Number(b)))
})

test('the range of a deleted entry is still reported', async () => {
  await client.query('begin')
  const { rows } = await client.query(`select ledger_version from folders where id = ${folderId}`)
  await client.query(`delete from entries where ${ofFolder} and id = 30`)
  expect(await readChangedEntries(client, watched, rows[0].ledger_version)).toEqual([['30', '30']])
  await client.query('rollback')
})

test('changes of another folder, or before the version, are ignored', async () => {
  expect(
    await changes([
      `update entries set comment = 'x' where folder_id = ${folders.sameFirm.folderId}`,
      `update accounts set name = 'x' where folder_id = ${folders.sameFirm.folderId}`,
      `update banks set rib = 'x'`,
    ]),
  ).toEqual([])
})

/** Ranges of ids, such as `1-1 5-9`. */
const ranges = (text: string) => text.split(' ').map((range) => range.split('-') as [string, string])

test('ranges can be written, read and merged', () => {
  expect(readMultirange('{}')).toEqual([])
  expect(readMultirange('{[1,2),[5,9007199254740992)}')).toEqual(ranges('1-1 5-9007199254740991'))
  expect(multirangeLiteral(ranges('1-1 5-9'))).toBe(`'{[1,1],[5,9]}'::int8multirange`)
  expect(mergedRanges(ranges('10-20 9-9 1-3 2-2 5-5 15-30'))).toEqual(ranges('1-3 5-5 9-30'))
})

test('a changed account reports the entries that show it, or all entries if more than a fifth show it', async () => {
  const insert = (from: number, to: number, account: number) => [
    `insert into entries (schema_id, folder_id, exercice_id, journal_id, date, accounted_at, created_at, source, currency, id)
       select ${schemaId}, ${folderId}, 12, 31, '2024-09-01', '2024-09-01', '2024-09-01', 'E', 'EUR', n
       from generate_series(${from}, ${to}) n`,
    `insert into movements (schema_id, folder_id, exercice_id, account_id, description, invoice_number, debit, credit, entry_id, id)
       select ${schemaId}, ${folderId}, 12, ${account}, '', '', 0, 0, n, n from generate_series(${from}, ${to}) n`,
  ]
  await client.query('begin')
  // Of some 2,600 entries, 2,500 show account 103.
  for (const statement of insert(100_001, 102_500, 103)) await client.query(statement)
  const { rows } = await client.query(`select ledger_version from folders where id = ${folderId}`)
  await client.query(`update accounts set name = 'x' where ${ofFolder} and id = 103`)
  const since = (of: Partial<WatchedEntries> = {}) =>
    readChangedEntries(client, { ...watched, ...of }, rows[0].ledger_version)
  expect(await since()).toBe(everyEntry)
  // None of them is validated.
  const validated = await since({ among: ['e.validated_at is not null'] })
  expect(validated.length).toBeGreaterThan(5)
  expect(validated.at(-1)![1].length).toBeLessThan(5)
  // Now a fifth of more than 14,500.
  for (const statement of insert(200_001, 212_000, 104)) await client.query(statement)
  await client.query(`delete from ledger_changes where kind = 'entries'`)
  const shown = await since()
  expect(shown).toContainEqual(['100001', '102500'])
  expect(shown.at(-1)).toEqual(['100001', '102500'])
  await client.query('rollback')
})
