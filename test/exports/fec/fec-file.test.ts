/** A FEC, compared with what SQL reads from the folder, and checked against the article that requires it. */
import type { Buffer } from 'node:buffer'
import { beforeAll, describe, expect, test } from 'vitest'
import { createPool } from '../../../src/db/pool.ts'
import { createFolder } from '../../../src/ledger/tenants.sql.ts'
import { renderFec } from '../../support/fixtures/rendered-file.ts'
import { forTests } from '../../support/for-tests.ts'
import { addToFolder } from '../../support/ledgers/full-ledger.ts'
import { fillHostileLedger } from '../../support/ledgers/hostile-ledger.ts'
import { addEntry, fillFolders } from '../../support/ledgers/ledger.ts'
import { createTenants, folders } from '../../support/ledgers/tenants.ts'
import { plainFecFile } from '../../support/plain/plain-fec-file.ts'
import { createTestDatabase } from '../../support/servers/database.ts'

const database = forTests(createTestDatabase)
const staff = forTests(() => createTenants(database.ownerUrl))
const pool = forTests(() => createPool(database.serviceUrl, { max: 2, applicationName: 'test' }))

const hostile = { schemaId: '100', folderId: '113' }
const filed = { schemaId: '100', folderId: '114' }
const known = { first: folders.first, otherTenant: folders.otherTenant, hostile, filed }

/** Texts with a special meaning in COPY, in JSON or in the file. */
const oddTexts = [
  '',
  ' ',
  'a\tb',
  '\r\n',
  '"',
  '\\',
  '\\N',
  '\\t',
  'é',
  '😀',
  '’',
  '\u00a0x\u00a0',
  '\u2028',
  '\ufdfa',
]
const oddColumns = ['RefInterne', '__proto__', 'toString', 'Col "é"', 'DateRglt']

beforeAll(async () => {
  const { first, otherTenant } = folders
  await fillFolders(staff, { first, otherTenant })
  for (const folder of [first, otherTenant]) await addToFolder(staff.client, folder)
  for (const folder of [hostile, filed]) {
    await createFolder(staff.client, { ...folders.sameFirm, id: folder.folderId, name: folder.folderId })
    await fillHostileLedger(staff.client, folder)
  }
  // Outside the books: an entry that was booked here, an entry of a FEC, and a draft.
  const [{ id: journalId }] = await sql(
    `select id from grandlivre.journals j where ${key('j', hostile)} and type = 'OD_EXC'`,
  )
  for (const [id, source] of [
    ['79001', 'E'],
    ['79002', 'FEC'],
  ])
    await addEntry(staff.client, hostile, { id: id!, journalId, source: source! }, [
      { id: `${id}1`, description: `from ${source}` },
    ])
  await addEntry(staff.client, hostile, { id: '79003', journalId, validatedAt: null }, [
    { id: '790031', description: 'draft' },
  ])
  await fileFields()
})

const sql: typeof staff.sql = (...query) => staff.sql(...query)
const key = (alias: string, { schemaId, folderId }: typeof filed) =>
  `${alias}.schema_id = ${schemaId} and ${alias}.folder_id = ${folderId}`

/** As an import leaves them: some fields of entries and of lines, in an exercice with further columns. */
async function fileFields(): Promise<void> {
  const columns = [
    'PieceDate',
    'ValidDate',
    'EcritureNum',
    'CompteLib',
    'PieceRef',
    'EcritureLib',
    'DateLet',
    ...oddColumns,
  ]
  let n = 0
  for (const table of ['entries', 'movements'])
    for (const { id } of await sql(
      `select id from grandlivre.${table} t where ${key('t', filed)} order by id`,
    )) {
      const fields = columns
        .filter(() => ++n % 5 < 2)
        .map((column) => [column, oddTexts[n++ % oddTexts.length]])
      const json = n % 4 === 0 ? null : JSON.stringify(Object.fromEntries(fields))
      await sql(`update grandlivre.${table} t set filed = $1 where ${key('t', filed)} and id = $2`, [
        json,
        id,
      ])
    }
  await sql(
    `update grandlivre.exercices x set filed_columns = $1, scattered = true where ${key('x', filed)} and id = 12`,
    [oddColumns],
  )
  await sql(
    `update grandlivre.accounts a set filed_number = '4' || id, filed_name = $1, auxiliary_number = 'A' || id,
       auxiliary_name = $2 where ${key('a', filed)} and id < 105`,
    [oddTexts.join('|'), oddTexts.toReversed().join('|')],
  )
  await sql(`update grandlivre.journals j set filed_name = $1 where ${key('j', filed)} and id < 35`, [
    oddTexts.join(),
  ])
}

const lines = (bytes: Buffer) => bytes.toString('latin1').split('\r\n').slice(1, -1)

describe('a file', () => {
  test.each(Object.keys(known) as (keyof typeof known)[])(
    'of the folder %s equals the rows that SQL reads, byte for byte, in both encodings and with all columns',
    async (name) => {
      for (const exerciceId of ['11', '12', '13'])
        for (const encoding of [undefined, 'utf-8'] as const)
          for (const columns of [undefined, 'extended'] as const) {
            const { bytes, totals, rowsTotal } = await renderFec(pool, known[name], exerciceId, {
              encoding,
              columns,
            })
            const expected = await plainFecFile(staff.client, known[name], exerciceId, {
              ...(encoding ? { encoding } : {}),
              ...(columns ? { columns } : {}),
            })
            const text = encoding ? 'utf8' : 'latin1'
            expect(bytes.toString(text).split('\r\n')).toEqual(expected.toString(text).split('\r\n'))
            expect(bytes.equals(expected)).toBe(true)
            expect(totals.rows).toBe(rowsTotal)
          }
    },
  )

  test('has lines in every exercice of these tests, and values in every unusual column', async () => {
    const { bytes } = await renderFec(pool, filed, '12', { encoding: 'utf-8', columns: 'extended' })
    const rows = bytes
      .toString()
      .split('\r\n')
      .slice(1, -1)
      .map((line) => line.split('\t'))
    expect(rows.length).toBeGreaterThan(20)
    for (const [index, column] of oddColumns.entries())
      expect([
        column,
        rows.some((row) => row[18 + index] === '😀' || row[18 + index] === '’' || row[18 + index] === 'é'),
      ]).toEqual([column, true])
  })

  test('of a deleted exercice fails with a reason; a file of an empty exercice has only its header', async () => {
    await expect(renderFec(pool, hostile, '99')).rejects.toMatchObject({
      name: 'UnsupportedByFormat',
      message: 'The exercice 99 is no longer in the folder',
    })
    await expect(renderFec(pool, folders.first, '99')).rejects.toThrow('no longer')
    await sql(`insert into grandlivre.exercices (schema_id, folder_id, id, start_date, end_date)
      values (${hostile.schemaId}, ${hostile.folderId}, 14, '2026-01-01', '2026-12-31')`)
    const { bytes, totals, rowsTotal } = await renderFec(pool, hostile, '14')
    expect(bytes.toString().split('\t')).toHaveLength(18)
    expect(bytes.toString()).toMatch(/\tIdevise\r\n$/)
    expect([totals.rows, rowsTotal]).toEqual([0, 0])
  })
})

describe('notes', () => {
  test('count the entries that are left out', async () => {
    const [left] = await sql(`select count(*) as drafts from grandlivre.entries e
      where ${key('e', hostile)} and e.exercice_id = 12 and e.validated_at is null`)
    const { notes } = await renderFec(pool, hostile, '12')
    expect(notes).toMatchObject({
      drafts: Number(left.drafts),
      outsideBooks: 1,
      earlierImports: 0,
      columnsLeftOut: 0,
    })
    expect(notes['drafts']).toBeGreaterThan(0)
  })

  test('count blank and altered fields of every line, whether filed or not', async () => {
    for (const [folder, columns] of [
      [hostile, undefined],
      [filed, undefined],
      [filed, 'extended'],
    ] as const) {
      const { notes, bytes } = await renderFec(pool, folder, '12', { columns })
      const rows = lines(bytes).map((line) => line.split('\t'))
      const blank = (column: number) => rows.filter((row) => row[column] === '').length
      const mandatory = [0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12]
      expect(notes).toMatchObject({
        blankValidDates: blank(15),
        blankFields: mandatory.reduce((sum, column) => sum + blank(column), 0),
        columnsLeftOut: folder === filed && !columns ? oddColumns.length : 0,
      })
      expect(notes['blankFields']).toBeGreaterThan(0)
      if (folder === filed) expect(notes['blankValidDates']).toBeGreaterThan(0)
    }
  })

  test('count each replaced character as often as it occurs', async () => {
    const replaced = async (entry: object, description: string, encoding?: 'utf-8') => {
      await sql('begin')
      await sql(`delete from grandlivre.movements m where ${key('m', hostile)} and exercice_id = 13`)
      const rows = ['1', '2'].map((id) => ({ id: `99999${id}`, description, accountId: '110' }))
      await addEntry(
        staff.client,
        hostile,
        { id: '99999', exerciceId: '13', date: '2025-09-01', journalId: '41', ...entry },
        rows,
      )
      await sql(`update grandlivre.accounts a set name = 'plain' where ${key('a', hostile)} and id = 110`)
      await sql(`update grandlivre.journals j set name = 'plain’' where ${key('j', hostile)} and id = 41`)
      await sql('commit')
      const { notes } = await renderFec(pool, hostile, '13', { encoding })
      await sql(`delete from grandlivre.entries e where ${key('e', hostile)} and id = 99999`)
      return notes['replacedCharacters']
    }
    // On each of the two lines: one character of the journal, and the characters of the description.
    expect(await replaced({}, 'été')).toBe(2)
    expect(await replaced({}, '’😀\t\r\n')).toBe(2 + 2 * 5)
    expect(await replaced({}, 'e\u0301')).toBe(2)
    expect(await replaced({}, '’😀\t\r\n', 'utf-8')).toBe(2 * 3)
  })
})

describe('the order', () => {
  const descriptions = async () =>
    lines((await renderFec(pool, hostile, '12')).bytes).map((line) => line.split('\t')[10]!)
  const ids = ['80001', '80002', '80003', '80004', '80005']

  test('puts opening journals first, then sorts by day of validation and id', async () => {
    const [a, b, c, d, e] = ids as [string, string, string, string, string]
    const add = (id: string, entry: object) =>
      addEntry(staff.client, hostile, { id, ...entry }, [
        { id: `${id}2`, description: `${id} second` },
        { id: `${id}1`, description: `${id} first` },
      ])
    await add(a, { journalId: '40', validatedAt: '2024-09-09' })
    await add(b, { journalId: '40', validatedAt: '2024-09-08' })
    await add(c, { journalId: '37', validatedAt: '2030-01-01' })
    await add(d, { journalId: '40', validatedAt: '2024-09-08' })
    await add(e, { journalId: '39', validatedAt: '2030-01-02' })
    const types = await sql(
      `select id, type from grandlivre.journals j where ${key('j', hostile)} and id in (37, 39)`,
    )
    expect(types.map(({ type }) => type).sort()).toEqual(['AN', 'RBAL'])
    const found = (await descriptions()).filter((text) => /^8000\d /.test(text))
    expect(found).toEqual([c, e, b, d, a].flatMap((id) => [`${id} first`, `${id} second`]))
    const all = await descriptions()
    expect(all.findIndex((text) => text.startsWith(e))).toBeLessThan(all.indexOf(`${b} first`))
  })

  test('of an imported exercice is the order of its file, even if the lines of an entry are scattered', async () => {
    const file = `update grandlivre.exercices x set filed_columns = $1, scattered = $2
      where ${key('x', hostile)} and id = 12`
    await sql(file, [[], false])
    const found = (await descriptions()).filter((text) => /^8000\d /.test(text))
    expect(found).toEqual(ids.flatMap((id) => [`${id} first`, `${id} second`]))
    await sql(file, [[], true])
    // A line of the first entry is between those of the last, and a line of the second entry comes first.
    await sql(`update grandlivre.movements m set place = 800051.5 where ${key('m', hostile)} and id = 800012`)
    await sql(`update grandlivre.movements m set place = 0.5 where ${key('m', hostile)} and id = 800022`)
    const scattered = await descriptions()
    expect(scattered[0]).toBe('80002 second')
    expect(scattered.slice(-3)).toEqual(['80005 first', '80001 second', '80005 second'])
    const { bytes, totals, rowsTotal, notes } = await renderFec(pool, hostile, '12')
    expect(bytes.equals(await plainFecFile(staff.client, hostile, '12'))).toBe(true)
    expect(totals.rows).toBe(rowsTotal)
    expect(notes['drafts']).toBeGreaterThan(0)
    await sql(file, [null, false])
  })

  test('leaves out drafts and journals outside the books, except those that came from a FEC', async () => {
    const texts = await descriptions()
    const found = ['from E', 'from FEC', 'draft'].map((text) => texts.includes(text))
    expect(found).toEqual([false, true, false])
  })
})

test('a FEC of an import by an earlier version has the order of its entries, numbers them in each journal, and reports this', async () => {
  await sql('begin')
  await sql('alter table grandlivre.entries disable trigger number_insert')
  for (const [id, journalId, validatedAt] of [
    ['82001', '31', '2025-09-09'],
    ['82002', '32', '2025-09-08'],
    ['82003', '31', '2025-09-01'],
  ])
    await addEntry(
      staff.client,
      hostile,
      {
        id: id!,
        journalId: journalId!,
        validatedAt: validatedAt!,
        exerciceId: '13',
        date: '2025-09-01',
        source: 'FEC',
      },
      [{ id: `${id}1`, description: id! }],
    )
  await sql('alter table grandlivre.entries enable trigger number_insert')
  await sql('commit')
  const { bytes, notes } = await renderFec(pool, hostile, '13')
  const found = lines(bytes)
    .map((line) => line.split('\t'))
    .filter((row) => row[10]!.startsWith('8200'))
  expect(found.map((row) => [row[10], row[2], row[9]])).toEqual([
    ['82001', '1', '20250901'],
    ['82002', '1', '20250901'],
    ['82003', '2', '20250901'],
  ])
  expect(notes['earlierImports']).toBe(3)
})
