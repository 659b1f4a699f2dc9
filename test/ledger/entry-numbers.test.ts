/** Validated entries are numbered by journal and exercice (docs/spec/fec.md#numbers), whatever program writes them. */
import { beforeEach, expect, test } from 'vitest'
import { migrate } from '../../src/db/migrations/migrate.ts'
import { createFirm, createFolder, createSchema } from '../../src/ledger/tenants.sql.ts'
import { forEachTest } from '../support/for-tests.ts'
import { addEntry, insertDimensions } from '../support/ledgers/ledger.ts'
import { createTenants, folders } from '../support/ledgers/tenants.ts'
import { connect, createTestDatabase } from '../support/servers/database.ts'
import { makeFormerSchema } from '../support/upgrade/former-schema.ts'

const folder = { schemaId: folders.first.schemaId, folderId: folders.first.folderId }
const database = forEachTest(createTestDatabase)
const staff = forEachTest(() => createTenants(database.ownerUrl))

beforeEach(() => insertDimensions(staff.client, folder, 'first'))

const sql = async (text: string) => (await staff.client.query(text)).rows
const add = (id: number, entry: object = {}) =>
  addEntry(staff.client, folder, { id: String(id), ...entry }, [])
const validate = (where: string) =>
  sql(`update grandlivre.entries set validated_at = '2024-10-10' where ${where}`)
/** `31: 1 2 3`, by journal and exercice, in the order of ids. */
const numbers = async () => {
  const rows =
    await sql(`select exercice_id || '/' || journal_id as journal, string_agg(coalesce(number, '-'), ' ' order by id) as numbers
    from grandlivre.entries group by 1 order by 1`)
  return Object.fromEntries(rows.map(({ journal, numbers }) => [journal, numbers]))
}

test('numbers start at 1 in each journal and exercice, follow validation and id within a statement, and go on in later statements', async () => {
  for (const id of [1, 2, 3, 4, 5, 6]) await add(id, { validatedAt: null, journalId: id % 2 ? '31' : '32' })
  expect(await numbers()).toEqual({ '12/31': '- - -', '12/32': '- - -' })
  await sql(`update grandlivre.entries set validated_at = date '2024-12-31' - id::int`)
  expect(await numbers()).toEqual({ '12/31': '3 2 1', '12/32': '3 2 1' })
  await add(7)
  await add(8, { exerciceId: '13', date: '2025-09-01' })
  await add(9)
  expect(await numbers()).toEqual({ '12/31': '3 2 1 4 5', '12/32': '3 2 1', '13/31': '1' })
})

test('a number given is never changed, given twice, or taken back', async () => {
  await add(1)
  for (const value of [`'2'`, 'null'])
    await expect(sql(`update grandlivre.entries set number = ${value}`)).rejects.toThrow(
      /^entry 1 has the number 1, which cannot become (2|null)$/,
    )
  await sql(`update grandlivre.entries set validated_at = null`)
  await validate('true')
  await sql(`update grandlivre.entries set comment = 'x', number = '1'`)
  expect(await numbers()).toEqual({ '12/31': '1' })
  await add(2)
  await sql('delete from grandlivre.entries where id = 2')
  await add(3)
  expect(await numbers()).toEqual({ '12/31': '1 3' })
})

test('only an entry without a number can move to another journal or exercice', async () => {
  await add(1)
  await add(2, { validatedAt: null })
  for (const other of [
    'journal_id = 32',
    `exercice_id = 13, date = '2025-09-01'`,
    'journal_id = 32, comment = null',
  ])
    await expect(sql(`update grandlivre.entries set ${other} where id = 1`)).rejects.toThrow(
      /^entry 1 has the number 1 in its journal and exercice, and cannot move to others$/,
    )
  await sql('update grandlivre.entries set journal_id = 31, exercice_id = 12')
  await sql('update grandlivre.entries set journal_id = 32 where id = 2')
  await validate('id = 2')
  expect(await numbers()).toEqual({ '12/31': '1', '12/32': '1' })
})

test('numbers that entries bring are kept, and the next given number always follows the highest', async () => {
  await add(1, { number: '0041' })
  await add(2, { number: 'VE-1000' })
  await add(3)
  expect(await numbers()).toEqual({ '12/31': '0041 VE-1000 42' })
  await add(4, { number: '50' })
  await add(5, { validatedAt: null, number: '60' })
  await add(6, { validatedAt: null })
  await validate('id >= 5')
  expect(await numbers()).toEqual({ '12/31': '0041 VE-1000 42 50 60 61' })
})

test('a number in digits of another script does not count as a number, whatever the locale of the database', async () => {
  const unicode = await createTestDatabase({ template: `template0 builtin_locale 'PG_UNICODE_FAST'` })
  await migrate(unicode.ownerUrl)
  const { client, end } = await createTenants(unicode.ownerUrl)
  try {
    await insertDimensions(client, folder, 'first')
    const addHere = (id: string, number: string | null = null) => addEntry(client, folder, { id, number }, [])
    await addHere('1', '٧٠')
    await addHere('2')
    await addHere('3', '٧١')
    await addHere('4')
    const { rows } = await client.query(
      `select '٧' ~ '^\\d$' as digit, array_agg(number order by id) as numbers from grandlivre.entries`,
    )
    expect(rows).toEqual([{ digit: true, numbers: ['٧٠', '1', '٧١', '2'] }])
  } finally {
    await end()
    await unicode.drop()
  }
})

test('one statement numbers entries of several folders separately, even with equal ids, and leaves out drafts', async () => {
  const other = folders.sameFirm
  await insertDimensions(staff.client, { schemaId: other.schemaId, folderId: other.folderId }, 'other')
  const insert = (ids: string, validatedHere: string, validatedThere: string) =>
    sql(`insert into grandlivre.entries (schema_id, folder_id, id, exercice_id, journal_id, date, accounted_at,
        created_at, validated_at, source, currency)
      select ${folder.schemaId}, f.id, i, 12, 31, '2024-10-10', '2024-10-10', now(), f.validated_at, 'E', 'EUR'
      from (values (${folder.folderId}, ${validatedHere}::date), (${other.folderId}, ${validatedThere})) f (id, validated_at),
        generate_series(${ids}) i`)
  const byFolder = async () =>
    (
      await sql(`select string_agg(coalesce(number, '-'), ' ' order by id) as numbers
        from grandlivre.entries group by folder_id order by folder_id = ${other.folderId}`)
    ).map(({ numbers }) => numbers)
  const day = `date '2024-10-10'`
  await insert('1, 3', day, day)
  expect(await byFolder()).toEqual(['1 2 3', '1 2 3'])
  await insert('4, 5', day, 'null')
  expect(await byFolder()).toEqual(['1 2 3 4 5', '1 2 3 - -'])
  await insert('6, 7', 'null', 'null')
  await validate(`id > 4 and (folder_id = ${other.folderId} or id = 6)`)
  expect(await byFolder()).toEqual(['1 2 3 4 5 6 -', '1 2 3 - 4 5 6'])
})

test('drafts get a number only when they are validated, not by other updates', async () => {
  await add(1, { validatedAt: null })
  await sql(`update grandlivre.entries set comment = 'still a draft'`)
  expect(await numbers()).toEqual({ '12/31': '-' })
  await validate('id = 1')
  expect(await numbers()).toEqual({ '12/31': '1' })
})

test('validated entries of earlier imports keep their numbers, and new numbers follow them', async () => {
  await sql('alter table grandlivre.entries disable trigger number_insert')
  for (const id of [1, 2, 3]) await add(id, { source: 'FEC' })
  await sql('alter table grandlivre.entries enable trigger number_insert')
  await sql(`update grandlivre.entries set comment = 'changed'`)
  expect(await numbers()).toEqual({ '12/31': '- - -' })
  await add(4)
  await sql(`update grandlivre.entries set number = '77' where id = 1`)
  await add(5)
  expect(await numbers()).toEqual({ '12/31': '77 - - 4 78' })
})

test('concurrent validations in one journal leave no gap and give no number twice', async () => {
  for (let id = 1; id <= 40; id++) await add(id, { validatedAt: null })
  const other = await connect(database.ownerUrl)
  try {
    for (let id = 1; id <= 20; id++)
      await Promise.all([
        validate(`id = ${id}`),
        other.query(`update entries set validated_at = '2024-10-10' where id = ${id + 20}`),
      ])
  } finally {
    await other.end()
  }
  const given = (await numbers())['12/31'].split(' ').map(Number)
  expect(given.toSorted((a: number, b: number) => a - b)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1))
})

test('the migration numbers existing entries, except those of a FEC, without a new ledger version', async () => {
  const old = await createTestDatabase({ template: 'template1' })
  await makeFormerSchema(old.ownerUrl)
  const client = await connect(old.ownerUrl)
  try {
    await createSchema(client, { id: '1', name: 'x' })
    await createFirm(client, { schemaId: '1', id: '2', name: 'x' })
    await createFolder(client, { schemaId: '1', id: '3', firmId: '2', name: 'x' })
    await client.query(`
      insert into exercices (schema_id, folder_id, id, start_date, end_date) values (1, 3, 4, '2024-01-01', '2024-12-31');
      insert into journals (schema_id, folder_id, id, code, name, type) values (1, 3, 5, 'A', 'A', 'ACH'), (1, 3, 6, 'B', 'B', 'OD');
      insert into entries (schema_id, folder_id, id, exercice_id, journal_id, date, accounted_at, created_at, validated_at, source, currency)
        select 1, 3, id, 4, 5 + id % 2, '2024-02-01', '2024-02-01', now(),
          case when id <> 5 then date '2024-03-31' - id end, case when id in (2, 3) then 'FEC' else 'E' end, 'EUR'
        from generate_series(1, 8) id;`)
    const version = async () =>
      (await client.query('select ledger_version from folders')).rows[0].ledger_version
    const versionBefore = await version()
    await migrate(old.ownerUrl)
    const { rows } = await client.query(
      'select id, journal_id, number from entries order by journal_id, number::int nulls first, id',
    )
    expect(rows.map(({ id, journal_id, number }) => [id, journal_id, number])).toEqual([
      // 2 is of a FEC: exports number it 1.
      ['2', '5', null],
      ['8', '5', '2'],
      ['6', '5', '3'],
      ['4', '5', '4'],
      ['3', '6', null],
      ['5', '6', null],
      ['7', '6', '2'],
      ['1', '6', '3'],
    ])
    expect(await version()).toBe(versionBefore)
    await client.query(`update entries set validated_at = '2024-04-01' where id = 5`)
    expect((await client.query('select number from entries where id = 5')).rows).toEqual([{ number: '4' }])
  } finally {
    await client.end()
    await old.drop()
  }
})
