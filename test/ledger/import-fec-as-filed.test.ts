/** import fec: every field of every line is kept as it was filed, and the import reports where the ledger differs. */
import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type FecImported, importFec } from '../../src/ledger/fec/import-fec.ts'
import { expectFixture, fixturePath, readFixture } from '../support/fixtures/fixture-files.ts'
import { forEachTest } from '../support/for-tests.ts'
import { setImportStage } from '../support/imports/import-stage.ts'
import { columns, type FecRow, fecFile, forms, ledger } from '../support/ledgers/fec-file.ts'
import { ledgerContent } from '../support/ledgers/ledger-content.ts'
import { keptFec, plainFec } from '../support/plain/plain-fec.ts'

const stage = forEachTest(setImportStage)

const dialects = readdirSync(fixturePath('fec'))
  .filter((name) => name.endsWith('.expected.txt'))
  .map((name) => name.replace('.expected.txt', ''))

/** The result of an import: accounts with their identity, entries, attachments, and the report. */
async function outcome(imported: FecImported): Promise<object> {
  const { rows: accounts } = await stage.owner.query(
    `select a.number, a.name, concat_ws(' ', filed_number, auxiliary_number) as filed,
       case when c.account_id is not null then 'company' when w.account_id is not null then 'employee' end as party
     from grandlivre.accounts a
     left join grandlivre.companies c on c.account_id = a.id left join grandlivre.employees w on w.account_id = a.id
     where a.folder_id = $1 order by number`,
    [imported.folderId],
  )
  const { rows: entries } = await stage.owner.query(
    `select min(concat_ws(' ', j.code, e.date, 'number', coalesce(e.number, '-'), 'validated',
         coalesce(e.validated_at::text, '-'), e.currency, trim_scale(e.rate))) as entry,
       array_agg(concat_ws(' ', a.number, m.debit, m.credit, m.lettering_code, m.free_number) order by m.id) as movements
     from grandlivre.entries e join grandlivre.movements m on m.entry_id = e.id
     join grandlivre.journals j on j.id = e.journal_id join grandlivre.accounts a on a.id = m.account_id
     where e.exercice_id = $1 group by e.id order by e.id`,
    [imported.exerciceId],
  )
  const { rows: attached } = await stage.owner.query(
    'select attachments from grandlivre.movements where exercice_id = $1 and attachments is not null order by id',
    [imported.exerciceId],
  )
  const {
    movements: lines,
    unbalancedEntries,
    movedOpeningLines,
    entriesWithoutValidDate,
    isScattered,
  } = imported
  return {
    encoding: imported.encoding,
    ...{ lines, unbalancedEntries, movedOpeningLines, entriesWithoutValidDate, isScattered },
    auxiliaryLines: Object.fromEntries([...imported.auxiliaryLines].toSorted()),
    renumberedAccounts: imported.renumberedAccounts,
    filedColumns: imported.filedColumns,
    mixedCurrencyEntries: imported.mixedCurrencyEntries,
    unknownPaymentLines: imported.unknownPaymentLines,
    droppedTimes: Object.fromEntries(
      [...imported.findings.dayColumns].flatMap(([name, { droppedTimes: count }]) =>
        count > 0 ? [[name, count]] : [],
      ),
    ),
    accounts: accounts.map(({ number, name, filed, party }) =>
      `${number} ${name} (${filed}) ${party ?? ''}`.trim(),
    ),
    entries: entries.map(({ entry, movements }) => [entry, ...movements]),
    attachments: attached.map((row) => row.attachments),
  }
}

const asText = (rows: string[][]) => rows.map((fields) => `${fields.join('\t')}\r\n`).join('')

test.each(dialects)('the file %s is kept line by line and becomes the ledger beside it', async (name) => {
  const options = { name, start: '2023-01-01', end: '2023-12-31' }
  const imported = await importFec(stage.owner, { ...options, file: fixturePath(`fec/${name}.txt`) })
  expect(asText(await keptFec(stage.owner, imported.exerciceId))).toBe(
    readFixture(`fec/${name}.expected.txt`).toString('utf8'),
  )
  const found = JSON.stringify(await outcome(imported), null, 1)
  expectFixture(`fec/${name}.json`, Buffer.from(`${found}\n`))
})

test('every form of a ledger file gives the same entries and stores the same lines', async () => {
  const plain = plainFec(fecFile(ledger))
  const { folderId } = await stage.importRows(ledger)
  const expected = await ledgerContent(stage.owner, folderId)
  expect(expected).toHaveLength(11)
  for (const [name, form] of Object.entries(forms)) {
    const imported = await stage.importFile(fecFile(ledger, form), { replace: true })
    expect(imported).toMatchObject({ folderId, movements: 27, entries: 11 })
    expect(await ledgerContent(stage.owner, folderId), name).toEqual(expected)
    const kept = await keptFec(stage.owner, imported.exerciceId)
    expect(
      kept.map((fields) => fields.slice(0, columns.length)),
      name,
    ).toEqual(plain)
  }
})

test('entries without a validation date are validated on their own date, or stay drafts with --drafts', async () => {
  const validated = async (exerciceId: string) => {
    const { rows } = await stage.owner.query(
      `select count(*) filter (where validated_at is null)::int as drafts,
         count(*) filter (where validated_at = date)::int as "onTheirDate"
       from grandlivre.entries where exercice_id = $1`,
      [exerciceId],
    )
    return rows[0]
  }
  const plain = plainFec(fecFile(ledger))
  const imported = await stage.importRows(ledger)
  expect(imported).toMatchObject({ entriesWithoutValidDate: 7, drafts: 0 })
  expect(await validated(imported.exerciceId)).toEqual({ drafts: 0, onTheirDate: 7 })
  const apart = await stage.importRows(ledger, { replace: true, drafts: true })
  expect(apart).toMatchObject({ entriesWithoutValidDate: 7, drafts: 7 })
  expect(await validated(apart.exerciceId)).toEqual({ drafts: 7, onTheirDate: 0 })
  expect(await keptFec(stage.owner, apart.exerciceId)).toEqual(plain)
})

test('ids of movements ascend in the order of the lines of the file, even if the lines of an entry are apart', async () => {
  for (const [name, rows] of [ledger, ledger.toReversed(), readRows('scattered')].entries()) {
    const numbered = rows.map((row, at) => ({ ...row, EcritureLib: `line ${at}` }))
    const imported = await stage.importRows(numbered, { file: `${name + 1}FEC20231231.txt` })
    const { rows: found } = await stage.owner.query(
      'select description, place from grandlivre.movements where exercice_id = $1 order by id',
      [imported.exerciceId],
    )
    expect(found).toEqual(rows.map((_, at) => ({ description: `line ${at}`, place: null })))
    const { rows: entries } = await stage.owner.query(
      `select count(*)::int as descents from (select entry_id, lag(entry_id) over (order by id) as former
         from grandlivre.movements where exercice_id = $1) as m where entry_id < former`,
      [imported.exerciceId],
    )
    expect(imported.isScattered).toBe(entries[0].descents > 0)
  }
})

function readRows(name: string): FecRow[] {
  const [head, ...lines] = readFixture(`fec/${name}.expected.txt`)
    .toString('utf8')
    .trimEnd()
    .split('\r\n')
    .map((line) => line.split('\t'))
  return lines.map((fields) => Object.fromEntries(fields.map((field, at) => [head![at]!, field])))
}

test('names of accounts and journals that differ from the names in the folder are kept as filed', async () => {
  await stage.importRows(ledger)
  await stage.owner.query(
    `update grandlivre.accounts set name = 'renamed'; update grandlivre.journals set name = 'renamed'`,
  )
  const labels = { Achats: 'ACHATS', Fournisseurs: 'FRS', "Société Générale d'été": 'SG', Banque: '' }
  const renamed = ledger.map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([column, value]) => [
        column,
        column === 'EcritureDate'
          ? value.replace(/^2023/, '2024').replace(/^2022/, '2023')
          : ((labels as Record<string, string>)[value] ?? value),
      ]),
    ),
  )
  const next = await stage.importRows(renamed, { file: '123456789FEC20241231.txt' })
  expect(await keptFec(stage.owner, next.exerciceId)).toEqual(plainFec(fecFile(renamed)))
  const { rows } = await stage.owner.query(
    `select id from grandlivre.exercices where start_date = '2023-01-01'`,
  )
  expect(await keptFec(stage.owner, rows[0].id)).toEqual(plainFec(fecFile(ledger)))
})

test('an account keeps its number in later years, and an account from an earlier version is matched by number and name', async () => {
  const sale = (day: string, CompteNum: string, CompAuxNum: string, CompAuxLib: string): FecRow[] => [
    {
      ...ledger[11]!,
      EcritureDate: day,
      CompteNum,
      CompAuxNum,
      CompAuxLib,
      EcritureNum: CompteNum + CompAuxNum,
    },
    ...[12, 13].map((at) => ({ ...ledger[at]!, EcritureDate: day, EcritureNum: CompteNum + CompAuxNum })),
  ]
  const numbers = async () => {
    const { rows } = await stage.owner.query(
      `select number, name, filed_number as filed, auxiliary_number as auxiliary from grandlivre.accounts
       where number like '411%' order by id`,
    )
    return rows.map(({ number, name, filed, auxiliary }) => [number, name, filed, auxiliary])
  }
  await stage.importRows(sale('20220101', '411700', 'C1', 'Un'), { file: '123456789FEC20221231.txt' })
  expect(await numbers()).toEqual([['411C1', 'Un', '411700', 'C1']])
  // The number is taken, although 411100 is lower.
  const second = await stage.importRows(
    [...sale('20230101', '411100', 'C1', 'Un'), ...sale('20230101', '411700', 'C1', 'Un de plus')],
    { file: '123456789FEC20231231.txt' },
  )
  expect(second.renumberedAccounts).toEqual([{ filed: '411100 C1', number: '411100C1' }])
  expect(await numbers()).toEqual([
    ['411C1', 'Un', '411700', 'C1'],
    ['411100C1', 'Un', '411100', 'C1'],
  ])
  // As an earlier version left them: 411X2 has its number because another had 411X first.
  await stage.owner.query(
    `update grandlivre.accounts set filed_number = null, filed_name = null, auxiliary_number = null, auxiliary_name = null,
       number = case number when '411C1' then '411X' when '411100C1' then '411XX2' else number end,
       name = case number when '411C1' then 'First' when '411100C1' then 'Second' else name end`,
  )
  const third = await stage.importRows(
    [
      ...sale('20240101', '411100', 'X.', 'Second'),
      ...sale('20240101', '411700', 'X', 'First'),
      ...sale('20240101', '411800', 'X', 'Third'),
    ],
    { file: '123456789FEC20241231.txt' },
  )
  expect(await numbers()).toEqual([
    ['411X', 'First', '411700', 'X'],
    ['411XX2', 'Second', '411100', 'X.'],
    ['411800X', 'Third', '411800', 'X'],
  ])
  expect(third.renumberedAccounts).toEqual([{ filed: '411800 X', number: '411800X' }])
})

test('a tab is part of a field if another character separates the fields', async () => {
  const rows = ledger.map((row) => ({
    ...row,
    CompteNum: row['CompteNum']!.replace('607000', '411\tC01'),
    JournalCode: row['JournalCode']!.replace('HA', 'H\tA'),
  }))
  const imported = await stage.importFile(fecFile(rows, { separator: ';' }))
  const [, ...kept] = await keptFec(stage.owner, imported.exerciceId)
  expect(kept.map(([code, , , , account]) => [code, account])).toEqual(
    rows.map((row) => [row['JournalCode'], row['CompteNum']]),
  )
})

test('an auxiliary account without letters or digits does not change the number of its collective account', async () => {
  const sales = (year: string, auxiliaries: string[]) =>
    auxiliaries.flatMap((CompAuxNum, at) =>
      [11, 12, 13].map((line) => ({
        ...ledger[line]!,
        ...(line === 11 && { CompAuxNum, CompAuxLib: CompAuxNum }),
        EcritureNum: String(at + 1),
        EcritureDate: `${year}0315`,
      })),
    )
  await stage.importRows(sales('2023', ['X', '*', '-']), { file: '123456789FEC20231231.txt' })
  await stage.importRows(sales('2024', ['']), { file: '123456789FEC20241231.txt' })
  const { rows } = await stage.owner.query(
    `select concat_ws(' ', number, auxiliary_number) as account from grandlivre.accounts
     where number like '411%' order by number`,
  )
  expect(rows.map(({ account }) => account)).toEqual(['411000', '411000X *', '411000XX2 -', '411X X'])
})

test('a ledger that an earlier version imported is reported until it is imported again', async () => {
  const first = await stage.importRows(ledger)
  expect(first.earlierImports).toEqual([])
  await stage.owner.query(
    `alter table grandlivre.entries disable trigger refuse_other_number;
     update grandlivre.exercices set filed_columns = null; update grandlivre.entries set number = null, filed = null;
     alter table grandlivre.entries enable trigger refuse_other_number`,
  )
  const later = ledger.map((row) => ({ ...row, EcritureDate: row['EcritureDate']!.replace(/^2023/, '2024') }))
  const next = await stage.importRows(later, { file: '123456789FEC20241231.txt' })
  expect(next.earlierImports).toEqual([{ start: '2023-01-01', end: '2023-12-31' }])
  expect((await stage.importRows(ledger, { replace: true })).earlierImports).toEqual([])
})
