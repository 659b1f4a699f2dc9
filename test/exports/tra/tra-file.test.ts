/** A TRA file, compared with what SQL reads from the folder, and with golden files. */
import { Buffer } from 'node:buffer'
import { beforeAll, describe, expect, test } from 'vitest'
import { createPool } from '../../../src/db/pool.ts'
import { checkTra } from '../../../src/formats/tra/check/check.ts'
import { createFolder } from '../../../src/ledger/tenants.sql.ts'
import { expectFixture, readFixture } from '../../support/fixtures/fixture-files.ts'
import { type Chosen, renderedFile } from '../../support/fixtures/rendered-file.ts'
import { forTests } from '../../support/for-tests.ts'
import { addToFolder } from '../../support/ledgers/full-ledger.ts'
import { fillHostileLedger } from '../../support/ledgers/hostile-ledger.ts'
import { addEntry, fillFolders } from '../../support/ledgers/ledger.ts'
import { createTenants, folders } from '../../support/ledgers/tenants.ts'
import { plainTra } from '../../support/plain/plain-tra.ts'
import { createTestDatabase } from '../../support/servers/database.ts'

const database = forTests(createTestDatabase)
const staff = forTests(() => createTenants(database.ownerUrl))
const pool = forTests(() => createPool(database.serviceUrl, { max: 4, applicationName: 'test' }))

const hostile = { schemaId: '100', folderId: '113' }
const known = { ...folders, hostile }

type Key = { schemaId: string; folderId: string }
type FolderName = keyof typeof known

beforeAll(async () => {
  const { first, otherFirm, otherTenant } = folders
  const filled = { first, otherFirm, otherTenant }
  await fillFolders(staff, filled)
  for (const folder of Object.values(filled)) await addToFolder(staff.client, folder)
  await createFolder(staff.client, { ...folders.sameFirm, id: hostile.folderId, name: 'Folder 113' })
  await fillHostileLedger(staff.client, hostile)
})

async function file(folder: Key, chosen: Chosen = {}) {
  const rendered = await renderedFile(pool, folder, 'TRA', { ...chosen, now: Date.UTC(2026, 6, 31, 22, 5) })
  return { ...rendered, lines: linesOf(rendered.bytes) }
}

const sql: typeof staff.sql = (...query) => staff.sql(...query)

async function* once(bytes: Buffer) {
  yield bytes
}
const checked = (bytes: Buffer) => checkTra(once(bytes))

const linesOf = (bytes: Buffer) => bytes.toString('latin1').split('\r\n')
const bytesOf = (lines: string[]) => Buffer.from(lines.map((line) => `${line}\r\n`).join(''), 'latin1')

const isParameter = (line: string) => line.startsWith('***')
const isCurrency = (line: string) => line.startsWith('***DEV')
const isBare = (line: string) => /^\*{3}\w{3}$/.test(line)

/**
 * The lines that a file must have: the folder's own records, from `fixtures/`, and what depends on the selected
 * entries, from SQL. The header of a partial file states that it is one, and it has no bare records.
 */
async function expected(name: FolderName, chosen?: Chosen): Promise<string[]> {
  const parameters = linesOf(readFixture(`tra-parameters/${name}.tra`)).slice(0, -1)
  const { currencies, entries } = await plainTra(staff.client, known[name], chosen ?? {})
  const own = chosen
    ? parameters.map((line) => line.replace(/^\*{3}S5EXPDOS/, '***S5EXPJRL')).filter((line) => !isBare(line))
    : parameters
  const at = own.findIndex(isCurrency)
  const others = own.filter((line) => !isCurrency(line))
  return [...others.slice(0, at), ...currencies, ...others.slice(at), ...entries, '']
}

describe('a file', () => {
  test.each(['first', 'otherFirm', 'otherTenant', 'sameFirm', 'hostile'] as const)(
    'of the whole folder %s equals the rows in SQL and its golden file, byte for byte',
    async (name) => {
      const { lines } = await file(known[name])
      expectFixture(`tra-parameters/${name}.tra`, bytesOf(lines.filter(isParameter)))
      expect(lines).toEqual(await expected(name))
    },
  )

  const parts: [string, Chosen][] = [
    ['a year', { exerciceId: '12' }],
    ['a period in the middle of years', { period: { start: '2024-05-15', end: '2024-09-01' } }],
    ['a day', { period: { start: '2024-09-01', end: '2024-09-01' } }],
    ['one journal', { journalIds: ['32'] }],
    ['journals of a year', { exerciceId: '11', journalIds: ['31', '33', '37', '40'] }],
    [
      'journals of a period',
      { period: { start: '2024-01-01', end: '2025-12-31' }, journalIds: ['33', '34'] },
    ],
  ]
  test.each(parts)('of %s equals the rows in SQL, and contains no other entries', async (_, chosen) => {
    for (const name of ['first', 'hostile'] as const) {
      const { lines, totals, rowsTotal } = await file(known[name], chosen)
      expect(lines).toEqual(await expected(name, chosen))
      expect(lines[0]!.slice(8, 14)).toBe('JRLETE')
      expect(totals.rows).toBe(rowsTotal)
      if (name === 'hostile') expect(totals.rows).toBeGreaterThan(0)
    }
  })

  test('has its entries in the order of their ids, numbered without gaps, even if the ids of two years interleave', async () => {
    const entries = (await file(known.first)).lines.filter((line) => line.length === 1407)
    const ids = entries.map((line) => Number(line.slice(222, 257)))
    expect(ids).toEqual(ids.toSorted((a, b) => a - b))
    const numbers = [...new Set(entries.map((line) => Number(line.slice(151, 159))))]
    expect(numbers).toEqual(numbers.map((_, i) => i + 1))
    expect(new Set(ids).size).toBe(numbers.length)
  })
})

describe('a hostile folder', () => {
  test('gives files without problems, both of the whole folder and of parts', async () => {
    for (const chosen of [{}, { exerciceId: '12' }, { journalIds: ['31', '33'] }]) {
      const { problems, problemCount, ...found } = await checked((await file(known.hostile, chosen)).bytes)
      expect(problems).toEqual([])
      expect(problemCount).toBe(0)
      expect(found.debit).toBe(found.credit)
      expect(found.movements).toBeGreaterThan(10)
    }
  })

  test('has names in Windows-1252, cut to length, with one blank for a run of control characters', async () => {
    const { bytes } = await file(known.hostile)
    const names = bytes
      .toString('latin1')
      .split('\r\n')
      .filter((line) => line.startsWith('***JAL'))
      .map((line) => new TextDecoder('windows-1252').decode(Buffer.from(line.slice(9, 44), 'latin1')).trim())
    expect(names.slice(0, 9)).toEqual([
      'É'.repeat(35),
      'tab line break',
      'bell  delete  next  line separator',
      '? emoji ?????',
      '????????? ? ???',
      'é à combining, o two at once',
      `${'x'.repeat(34)}é`,
      'œuvre « € » – — ’ “” …',
      '?ódz, Istanbul, fin, 1, Wide, ????',
    ])
  })

  test('has short codes that are unique', async () => {
    const { lines } = await file(known.hostile)
    const journals = lines.filter((line) => line.startsWith('***JAL')).map((line) => line.slice(6, 9))
    expect(journals.slice(0, 3)).toEqual(['AC1', 'AC2', 'J33'])
    expect(new Set(journals).size).toBe(journals.length)
    const entries = lines.filter((line) => line.length === 1407)
    const letterings = (number: string) => [
      ...new Set(
        entries
          .filter((line) => line.slice(31, 48).trim() === number)
          .map((line) => `${line.slice(1013, 1018).trim()} ${line.slice(1020, 1023).trim()}`),
      ),
    ]
    // Of two codes that differ only in case, the code in capitals is kept.
    expect(letterings('411DUPONT')).toEqual(
      expect.arrayContaining(['AB TL', expect.stringMatching(/^[a-z]{4} PL$/), ' AL']),
    )
    expect(letterings('401ALPHA')).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^[A-Z]{4} TL$/),
        expect.stringMatching(/^[a-z]{4} PL$/),
      ]),
    )
  })

  test('has no shares on its sixth axis, and this is reported', async () => {
    const { lines, axesLeftOut } = await file(known.hostile)
    expect(axesLeftOut).toEqual(['AXIS66'])
    const axes = lines.filter((line) => line.length === 1231).map((line) => line.slice(218, 220))
    expect(new Set(axes)).toEqual(new Set(['A1', 'A2', 'A4', 'A5']))
    expect((await file(known.first)).axesLeftOut).toEqual([])
  })
})

describe('the document type of an entry', () => {
  const typesOf = async (folder: Key, entryId: string) => {
    const { lines } = await file(folder)
    const own = lines.filter((line) => line.length === 1407 && line.slice(222, 257).trim() === entryId)
    return [own.length, [...new Set(own.map((line) => line.slice(11, 13)))]]
  }

  test('is on its first line, even if a much later line decides it', async () => {
    const many = Array.from({ length: 800 }, (_, i) => ({
      accountId: '110',
      credit: 1n,
      description: `line ${i} ${'of many '.repeat(120)}`,
    }))
    const lines = (lines: object[], from: number) =>
      lines.map((line, i) => ({ ...line, id: String(from + i) }))
    const folder = known.otherFirm
    await addEntry(staff.client, folder, { id: '90001', journalId: '31' }, [
      ...lines(many, 100_000),
      { id: '199999', accountId: '102', debit: 800n },
    ])
    await addEntry(staff.client, folder, { id: '90002', journalId: '33' }, [
      { id: '200000', accountId: '104', debit: 1n },
      ...lines(many, 200_001),
      { id: '299999', accountId: '102', debit: 799n },
    ])
    await addEntry(staff.client, folder, { id: '90003', journalId: '33' }, [
      ...lines(many, 300_000),
      { id: '399999', accountId: '104', debit: 800n },
    ])
    await addEntry(staff.client, folder, { id: '90004', journalId: '32' }, lines(many, 400_000))
    expect(await typesOf(folder, '90001')).toEqual([801, ['AF']])
    expect(await typesOf(folder, '90002')).toEqual([802, ['RF']])
    expect(await typesOf(folder, '90003')).toEqual([801, ['RC']])
    expect(await typesOf(folder, '90004')).toEqual([800, ['FC']])
    expect((await file(folder)).lines).toEqual(await expected('otherFirm'))
  })
})

describe('an export is refused, and the error names the reason,', () => {
  const refused = async (change: string, undo: string, message: RegExp) => {
    const { schemaId, folderId } = known.otherTenant
    const own = (text: string) =>
      sql(text.replaceAll('§', `schema_id = ${schemaId} and folder_id = ${folderId}`))
    await own(change)
    try {
      await expect(file(known.otherTenant)).rejects.toThrow(message)
    } finally {
      await own(undo)
    }
  }

  test('for account numbers of 18 characters', async () => {
    for (const id of ['102', '110'])
      await refused(
        `update grandlivre.accounts set number = rpad(number, 18, '0') where § and id = ${id}`,
        `update grandlivre.accounts set number = rtrim(number, '0') where § and id = ${id}`,
        id === '102'
          ? /^(?:CRR|CAE)\.CODE .* 17 columns .*"401ALPHA0000000000"$/
          : /^CGN\.CODE .*"607000000000000000"$/,
      )
  })

  test('for amounts of 21 characters', async () => {
    await refused(
      'update grandlivre.movements set debit = -9223372036854775807, credit = 0 where § and id = 8990',
      'update grandlivre.movements set debit = 1 where § and id = 8990',
      /^ENTRY\.MONTANT1 .* 20 columns .*"-92233720368547758,07"$/,
    )
  })

  test('for amounts that become too long in a currency', async () => {
    await refused(
      `update grandlivre.movements set debit = 9223372036854775807, credit = 0, entry_id = entry_id
       where § and id = (select min(m.id) from grandlivre.movements m join grandlivre.entries e
         on (e.schema_id, e.folder_id, e.id) = (m.schema_id, m.folder_id, m.entry_id)
         where m.schema_id = 200 and e.rate = 0.000001)`,
      'update grandlivre.movements set debit = 1 where § and debit = 9223372036854775807',
      /^ENTRY\.MONTANT1 .*"92233720368547758070000,00"$/,
    )
  })

  test('for rates of more than ten characters', async () => {
    await refused(
      `update grandlivre.entries set rate = 12345678.123456 where § and currency = 'USD'`,
      `update grandlivre.entries set rate = 1.5 where § and currency = 'USD'`,
      /^ENTRY\.TAUXDEV .*"12345678,123456"$/,
    )
  })

  test('for books that are not kept in euro', async () => {
    const { folderId } = known.otherTenant
    await refused(
      `update grandlivre.folders set currency = 'USD' where id = ${folderId}`,
      `update grandlivre.folders set currency = 'EUR' where id = ${folderId}`,
      /^A TRA file holds books in euro, and this folder is kept in USD$/,
    )
  })
})

test('movements larger than a chunk, at the end of one year and the start of the next, are kept apart', async () => {
  const shares = (count: number) => Array.from({ length: count }, () => [71n, 1n, 1n]).flat()
  await addEntry(staff.client, known.first, { id: '900000' }, [{ id: '900001', shares: shares(600) }])
  const next = { exerciceId: '13', date: '2025-09-01', accountedAt: '2025-09-01' }
  await addEntry(staff.client, known.first, { id: '900010', ...next }, [
    { id: '900011', shares: shares(300) },
  ])
  expect((await file(known.first)).lines).toEqual(await expected('first'))
})
