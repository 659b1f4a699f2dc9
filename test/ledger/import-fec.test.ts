/** import fec: a ledger is loaded completely and unchanged, whatever the form of its file. */
import { readFileSync } from 'node:fs'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { importFec } from '../../src/ledger/fec/import-fec.ts'
import { batchRows } from '../../src/ledger/import/entry-writer.ts'
import type { ImportProgress } from '../../src/ledger/import/import-transaction.ts'
import { shrinking, tries } from '../support/changes/properties.ts'
import { forEachTest } from '../support/for-tests.ts'
import { setImportStage } from '../support/imports/import-stage.ts'
import { changed, type FecRow, fecFile, ledger } from '../support/ledgers/fec-file.ts'
import { ledgerContent } from '../support/ledgers/ledger-content.ts'
import { haveRealLedgers, realLedgers } from '../support/ledgers/real-ledgers.ts'
import { keptFec, plainFec } from '../support/plain/plain-fec.ts'

const stage = forEachTest(setImportStage)

/** Random orders of lines; `npm run long -- random` tries 20. */
const rounds = Number(process.env['RANDOM_ROUNDS'] ?? 5)

test('a ledger becomes a folder, an exercice, accounts, journals, entries and movements', async () => {
  const imported = await stage.importRows(ledger)
  expect(imported).toMatchObject({
    name: '123456789FEC20231231',
    created: true,
    period: { start: '2023-01-01', end: '2023-12-31' },
    movements: 27,
    entries: 11,
    unbalancedEntries: 0,
    debit: 196_500n,
    credit: 196_500n,
    letteredLines: { complete: 4, partial: 2 },
    movedOpeningLines: 1,
  })
  const content = (await ledgerContent(stage.owner, imported.folderId)).map((entry) => JSON.parse(entry))
  /** An entry, then its movements by account. */
  const lines = content.map((entry) =>
    [entry.slice(0, -1), ...entry.at(-1)].map((fields) =>
      fields.map((field: unknown) => field ?? '-').join(' | '),
    ),
  )
  const year = '2023-01-01 | 2023-12-31'
  // The opening is one entry on the first day; the old date of the unpaid invoice is kept.
  expect(lines).toContainEqual([
    `AN | À nouveaux | AN | - | 2023-01-01 | - | 2023-01-01 | 2023-01-10 | FEC | EUR | - | ${year}`,
    '101000 | Capital | - | - | Report à nouveau | RAN | - | 0 | 30000 | none | - | -',
    '411C01 | Éts Noël & fils | Éts Noël & fils | - | Facture impayée | F-99 | 2022-06-15 | 10000 | 0 | complete | A | -',
    '512000 | Banque | - | - | Report à nouveau | RAN | - | 20000 | 0 | none | - | -',
  ])
  // F.IT gets CompteNum and CompAuxNum: FIT, which is spelled like an account number, has precedence. 90 EUR for 100 USD.
  expect(lines).toContainEqual([
    `HA | Achats | ACH | - | 2023-02-02 | - | 2023-02-02 | 2023-02-28 | FEC | USD | 0.9 | ${year}`,
    '401000FIT | F. I. T. | F. I. T. | - | Beans | INV-5 | - | 0 | 9000 | none | - | -',
    '607000 | Achats de café | - | - | Beans | INV-5 | - | 9000 | 0 | none | - | -',
  ])
  // The auxiliary of 404 stays with the movement.
  expect(lines).toContainEqual([
    expect.any(String),
    '215000 | Matériel | - | - | Machine à café | F 13 | - | 24000 | 0 | none | - | -',
    `404000 | Fournisseurs d'immobilisations | - | - | Machine à café | F 13 | - | 0 | 24000 | none | - | -`,
  ])
  // An entry without ValidDate is validated on its own date. The account's label becomes the employee's name.
  expect(lines).toContainEqual([
    `PA | OD Paie | OD_PAIE | - | 2023-03-31 | - | 2023-03-31 | 2023-03-31 | FEC | EUR | - | ${year}`,
    '421DUPRE | Dupré Zoé | - | Dupré Zoé | Paie de mars | 03 | - | 0 | 25000 | none | - | -',
    '641000 | Salaires | - | - | Paie de mars | 03 | - | 25000 | 0 | none | - | -',
  ])
  // Number 0 identifies no entry: each payment of the day is one. The journal's accounts show that it is a bank's.
  const bank = `CRA | Crédit Agricole | BQ | 512000 | 2023-03-01 | - | 2023-03-01 | 2023-03-01 | FEC | EUR | - | ${year}`
  expect(lines).toContainEqual([
    bank,
    "401FIT | Société Générale d'été | Société Générale d'été | - | Règlement |  | - | 12000 | 0 | complete | B | -",
    '512000 | Banque | - | - | Règlement |  | - | 0 | 12000 | none | - | -',
  ])
  expect(lines).toContainEqual([
    bank,
    '411C01 | Éts Noël & fils | Éts Noël & fils | - | Acompte |  | - | 0 | 20000 | partial | C | -',
    '512000 | Banque | - | - | Acompte |  | - | 20000 | 0 | none | - | -',
  ])
  const { rows } = await stage.owner.query(`select name, reference, siret, currency from grandlivre.folders`)
  expect(rows).toEqual([
    { name: '123456789FEC20231231', reference: '123456789', siret: '123456789', currency: 'EUR' },
  ])
})

test.each<[string, string, (bytes: Buffer) => Buffer]>([
  ['gzip', 'gz', gzipSync],
  ['zstd', 'zst', zstdCompressSync],
])('a file compressed by %s gives the ledger and name of the plain file', async (_, ending, compress) => {
  const plain = await stage.importRows(ledger)
  const expected = await ledgerContent(stage.owner, plain.folderId)
  const file = `987654321FEC20231231.txt.${ending}`
  const imported = await stage.importFile(compress(fecFile(ledger)), { file })
  expect(imported).toMatchObject({ name: '987654321FEC20231231', siret: '987654321', movements: 27 })
  expect(await ledgerContent(stage.owner, imported.folderId)).toEqual(expected)
  const cut = compress(fecFile(ledger)).subarray(0, -20)
  await expect(stage.importFile(cut, { file, replace: true })).rejects.toThrow('is not a whole')
})

test('lines in any order give the same entries if entry numbers identify them', async () => {
  let payments = 0
  // The three bank payments and the fees get their own numbers.
  const rows = ledger.map((row, at): FecRow => {
    if (row['JournalCode'] === 'CRA' && at <= 24 && at % 2 === 0) payments += 1
    return { ...row, EcritureNum: row['JournalCode'] === 'CRA' ? `B${payments}` : row['EcritureNum']! }
  })
  const first = await stage.importRows(rows)
  const expected = await ledgerContent(stage.owner, first.folderId)
  expect(first.entries).toBe(11)
  const allInAnyOrder = fc.shuffledSubarray(rows, { minLength: rows.length })
  const property = async (shuffled: FecRow[]) => {
    const imported = await stage.importRows(shuffled, { replace: true })
    expect(await ledgerContent(stage.owner, first.folderId)).toEqual(expected)
    expect(imported).toMatchObject({ entries: 11, unbalancedEntries: 0 })
  }
  await fc.assert(fc.asyncProperty(allInAnyOrder, shrinking(property)), tries(rounds))
})

test('if numbers count lines instead of entries, each run of lines that balances becomes an entry', async () => {
  // Without the line of zero: with a number of its own it would be an entry, because it balances alone.
  const rows = ledger.filter((row) => row['CompteLib'] !== 'Arrondis')
  const numbered = rows.map((row, at) => ({ ...row, EcritureNum: String(at + 1) }))
  const expected = await ledgerContent(stage.owner, (await stage.importRows(rows)).folderId)
  const imported = await stage.importRows(numbered, { replace: true })
  expect(await ledgerContent(stage.owner, imported.folderId)).toEqual(expected)
})

test('a line with amount zero does not end a run: under number 0 it stays with the lines after it', async () => {
  const expected = await ledgerContent(stage.owner, (await stage.importRows(ledger)).folderId)
  const zeroFirst = [...ledger.slice(0, 3), ledger[6]!, ...ledger.slice(3, 6), ...ledger.slice(7)]
  const imported = await stage.importRows(
    zeroFirst.map((row) => ({ ...row, EcritureNum: '00' })),
    { replace: true },
  )
  expect(await ledgerContent(stage.owner, imported.folderId)).toEqual(expected)
})

test('lines that never balance become one entry for each journal, number and date, and none is lost', async () => {
  // 250.00 of wages moved from one day to another: neither entry balances, but the ledger does.
  const rows = [
    ...changed(16, 'EcritureDate', '20230330').filter((row) => row['JournalCode'] !== 'CRA'),
    ...ledger.filter((row) => row['JournalCode'] === 'CRA').toReversed(),
  ]
  const imported = await stage.importRows(rows)
  expect(imported).toMatchObject({ movements: 27, debit: 196_500n, credit: 196_500n, unbalancedEntries: 2 })
  const { rows: wages } = await stage.owner.query(
    `select e.date::text, count(*)::int as lines, sum(m.debit - m.credit)::int as balance
     from grandlivre.entries e join grandlivre.journals j on j.id = e.journal_id
     join grandlivre.movements m on m.entry_id = e.id where j.code = 'PA' group by e.id, e.date order by e.date`,
  )
  expect(wages).toEqual([
    { date: '2023-03-30', lines: 1, balance: 25_000 },
    { date: '2023-03-31', lines: 1, balance: -25_000 },
  ])
})

test('an entry longer than a batch stays one entry', async () => {
  const longest = 1.2 * batchRows
  const pair = [ledger[16]!, ledger[17]!]
  const rows = Array.from({ length: longest }, (_, at) => ({ ...pair[at % 2]! }))
  for (const number of ['1', '0']) {
    // For number 0, a run that balances only at its very end.
    const ordered =
      number === '1' ? rows : rows.toSorted((one, other) => (one['Debit']! > other['Debit']! ? -1 : 1))
    const numbered = ordered.map((row) => ({ ...row, EcritureNum: number }))
    const imported = await stage.importRows(numbered, { replace: true })
    expect(imported).toMatchObject({ movements: longest, entries: 1, unbalancedEntries: 0 })
    const { rows: counts } = await stage.owner.query(
      `select count(*)::int from grandlivre.movements group by entry_id`,
    )
    expect(counts).toEqual([{ count: longest }])
  }
})

describe('over several batches, each loaded while the next is read', () => {
  /** Entries of two lines, whose ids count them. */
  const entries = (count: number): FecRow[] =>
    Array.from({ length: count }, (_, at) =>
      ledger
        .slice(16, 18)
        .map((row) => ({ ...row, EcritureNum: String(at + 1), EcritureLib: `n ${at + 1}` })),
    ).flat()

  test('no line is lost or moved', async () => {
    await stage.importRows(entries(7_000))
    const { rows } = await stage.owner.query(
      `select count(*)::integer as lines, count(distinct entry_id)::integer as entries,
         bool_and(description = 'n ' || ceil(line / 2.0) and number = ceil(line / 2.0)::text) as "inOrder"
       from (select m.*, e.number, row_number() over (order by m.id) as line from grandlivre.movements m
         join grandlivre.entries e on e.id = m.entry_id) m`,
    )
    expect(rows).toEqual([{ lines: 14_000, entries: 7_000, inOrder: true }])
  })

  // The first batch has 1,000 lines: two of the refused entries are in the second batch, one in the third.
  test.each([600, 4_000, 7_000])(
    'a refused entry %i fails the import, and nothing is loaded',
    async (refused) => {
      await stage.owner.query(`alter table grandlivre.movements add check (description <> 'n ${refused}')`)
      await expect(stage.importRows(entries(7_000))).rejects.toThrow(/violates check constraint/)
      const { rows } = await stage.owner.query('select from grandlivre.folders')
      expect(rows).toEqual([])
    },
  )
})

test('progress is reported for both steps, to the last byte', async () => {
  const reported: ImportProgress[] = []
  await stage.importFile(fecFile(ledger), { onProgress: (progress) => reported.push(progress) })
  const bytes = fecFile(ledger).length
  expect(reported.filter(({ step }) => step === 'checking').at(-1)).toMatchObject({
    bytes,
    bytesTotal: bytes,
    lines: 27,
  })
  expect(reported.at(-1)).toEqual({ step: 'loading', bytes, bytesTotal: bytes, lines: 27 })
})

test("an import does not wait for another folder's import that is still loading", async () => {
  // Enough rows for the planner to know the tables, and for each load to exceed its first batch.
  const rowsOf = (day: string) =>
    Array.from({ length: 2_400 }, (_, at) => ({
      ...ledger[16 + (at % 2)]!,
      EcritureNum: `${1 + Math.floor(at / 2)}`,
      EcritureDate: day,
    }))
  const { schemaId } = await stage.importRows(rowsOf('20230331'))
  const holder = await stage.owner.connect()
  await holder.query('begin')
  await holder.query('select grandlivre.lock_events($1)', [schemaId])
  const count = async (sql: string) => (await holder.query(sql)).rows.length
  // Events are written last: an import that waits for them has loaded all its lines.
  const slow = stage.importRows(rowsOf('20240331'), { file: '123456789FEC20241231.txt' })
  await expect
    .poll(
      () =>
        count(`select from pg_locks where locktype = 'advisory' and not granted and database =
      (select oid from pg_database where datname = current_database())`),
      { timeout: 20_000 },
    )
    .toBe(1)
  const other = stage.importRows(rowsOf('20230331'), { file: '987654321FEC20231231.txt' })
  try {
    await expect
      .poll(() => count(`select from grandlivre.folders where reference = '987654321'`), { timeout: 20_000 })
      .toBe(1)
  } finally {
    await holder.query('commit')
    holder.release()
    expect(await Promise.all([slow, other])).toMatchObject([{ movements: 2_400 }, { movements: 2_400 }])
  }
})

test.skipIf(!haveRealLedgers)('real ledgers are loaded and kept line by line, to the cent', async () => {
  for (const [at, { file, lines, total, lettered }] of realLedgers.entries()) {
    const imported = await importFec(stage.owner, { file })
    expect(imported).toMatchObject({ movements: lines, debit: total, credit: total, unbalancedEntries: 0 })
    const { rows } = await stage.owner.query(
      `select count(*)::int as lines, sum(debit) as debit, sum(credit) as credit, count(distinct entry_id)::int as entries,
         count(*) filter (where lettering_state <> 'none')::int as lettered
       from grandlivre.movements where exercice_id = $1`,
      [imported.exerciceId],
    )
    // The second ledger has its opening under many dates, and number 0 on every line.
    const entries = [2033, 666][at]!
    expect(rows).toEqual([{ lines, debit: String(total), credit: String(total), entries, lettered }])
    const { rows: unbalanced } = await stage.owner.query(
      `select entry_id from grandlivre.movements where exercice_id = $1 group by entry_id having sum(debit) <> sum(credit)`,
      [imported.exerciceId],
    )
    expect(unbalanced).toEqual([])
    const { rows: misjudged } = await stage.owner.query(
      `select account_id, lettering_code from grandlivre.movements where exercice_id = $1 and lettering_code is not null
       group by account_id, lettering_code
       having (sum(debit) = sum(credit)) <> bool_and(lettering_state = 'complete')`,
      [imported.exerciceId],
    )
    expect(misjudged).toEqual([])
    expect(await keptFec(stage.owner, imported.exerciceId)).toEqual(plainFec(readFileSync(file)))
    await expect(importFec(stage.owner, { file })).rejects.toThrow('--replace')
  }
})
