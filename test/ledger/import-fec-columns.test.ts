/** import fec: third parties, journals, currencies and payment modes. */
import { expect, test } from 'vitest'
import { type JournalUse, journalTypeByName, journalTypeByUse } from '../../src/ledger/fec/survey/journals.ts'
import { forEachTest } from '../support/for-tests.ts'
import { setImportStage } from '../support/imports/import-stage.ts'
import { columns, type FecRow, fecFile, ledger } from '../support/ledgers/fec-file.ts'
import { rowCounts } from '../support/ledgers/ledger-content.ts'

const stage = forEachTest(setImportStage)

test('third parties whose numbers differ only in punctuation keep their accounts from year to year', async () => {
  const invoice = (year: string, number: string, name: string, at: number): FecRow[] =>
    [3, 4].map((index) => ({
      ...ledger[index]!,
      EcritureNum: `${at}`,
      EcritureDate: `${year}0131`,
      Debit: index === 3 ? '0,00' : '100,00',
      Credit: index === 3 ? '100,00' : '0,00',
      ...(index === 3 && { CompAuxNum: number, CompAuxLib: name }),
      EcritureLib: name,
      EcritureLet: '',
    }))
  const names = { 'F-1': 'Alpha', F1: 'Beta', 'F.1': 'Gamma' }
  const years = {
    2021: ['F-1'],
    2022: ['F-1', 'F1', 'F.1'],
    2023: ['F1', 'F-1'],
    2024: ['F.1'],
  } satisfies Record<string, (keyof typeof names)[]>
  for (const [year, parties] of Object.entries(years))
    await stage.importRows(
      parties.flatMap((number, at) => invoice(year, number, names[number], at + 1)),
      { file: `123456789FEC${year}1231.txt` },
    )
  const { rows } = await stage.owner.query(
    `select a.name, array_agg(distinct m.description) as booked, count(*)::int from grandlivre.movements m
     join grandlivre.accounts a on a.id = m.account_id where a.number like '401%' group by a.id, a.name order by a.name`,
  )
  expect(rows).toEqual([
    { name: 'Alpha', booked: ['Alpha'], count: 3 },
    { name: 'Beta', booked: ['Beta'], count: 2 },
    { name: 'Gamma', booked: ['Gamma'], count: 2 },
  ])
})

test.each([
  ['AN', 'Journal', 'AN'],
  ['X', 'Report à nouveau', 'AN'],
  ['RB', 'Reprise de balance', 'RBAL'],
  ['EXT', '', 'EXT'],
  ['X', 'Écritures à extourner', 'A_EXT'],
  ['X', 'Notes de frais', 'NFD'],
  ['OD', 'OD Paye', 'OD_PAIE'],
  ['OD', 'Déclaration de TVA', 'OD_DECL_FISCALE'],
  ['OD', 'Lettrage', 'OD_LET'],
  ['OD2', '', 'OD'],
  ['ac', 'Journal 1', 'ACH'],
  ['X', 'FOURNISSEURS', 'ACH'],
  ['VTE', '', 'VTE'],
  ['VT1', 'Journal 2', 'VTE'],
  ['X', 'Facturation', 'VTE'],
  ['BNP', '', 'BQ'],
  ['CE', "Caisse d'épargne", 'BQ'],
  ['CA', 'Caisse', 'CAISSE'],
  // The initials may stand for a bank or for a till.
  ['CA', 'Crédit Agricole', undefined],
  ['X1', 'Divers journaux', undefined],
])('the journal %s "%s" is of type %s', (code, label, type) => {
  expect(journalTypeByName(code, label)).toBe(type)
})

test.each([
  ['BQ', { bank: 34, supplier: 40, customer: 20 }],
  ['CAISSE', { cash: 34, income: 40 }],
  ['ACH', { bank: 33, supplier: 33, cost: 30, income: 2 }],
  ['VTE', { customer: 20, income: 30, cost: 29 }],
  ['OD', { customer: 20, income: 30, cost: 30 }],
  ['OD', { supplier: 19, cost: 80 }],
] as const)('a journal with an uninformative name is of type %s by its 100 lines on %j', (type, use) => {
  const none: JournalUse = { lines: 100, bank: 0, cash: 0, supplier: 0, customer: 0, cost: 0, income: 0 }
  expect(journalTypeByUse({ ...none, ...use })).toBe(type)
})

test('an entry in a foreign currency gets one rate from all its lines together, if they yield a rate', async () => {
  // Amounts of each line in euro and in the currency; the rate.
  const entries: Record<string, [string[], string[], string | null]> = {
    'a credit note among invoices': [
      ['100,00', '-10,00', '-90,00'],
      ['-110,00', '11,00', '99,00'],
      '0.909091',
    ],
    'a rate that is rounded, not truncated': [['2,00', '-2,00'], ['3,00', '-3,00'], '0.666667'],
    'no foreign amounts': [['90,00', '-90,00'], ['', ''], null],
    'foreign amounts of zero': [['90,00', '-90,00'], ['0,00', ''], null],
    'a rate too large to store': [['999999999999999,99', '-999999999999999,99'], ['0,001', ''], null],
    'a rate below a millionth': [['0,01', '-0,01'], ['30000,00', '30000,00'], null],
    'the euro by another name': [['90,00', '-90,00'], ['90,00', '90,00'], null],
  }
  const rows = Object.entries(entries).flatMap(([name, [amounts, foreign]], entry) =>
    amounts.map((amount, at) => ({
      ...ledger[16]!,
      EcritureNum: `${entry + 1}`,
      EcritureLib: name,
      Debit: amount,
      Montantdevise: foreign[at]!,
      Idevise: name.includes('euro') ? '€' : 'USD',
    })),
  )
  await stage.importRows(rows)
  const { rows: found } = await stage.owner.query(
    `select distinct m.description, e.currency, e.rate from grandlivre.entries e
     join grandlivre.movements m on m.entry_id = e.id`,
  )
  for (const { description, currency, rate } of found)
    expect([description, currency, rate]).toEqual([
      description,
      description.includes('euro') ? 'EUR' : 'USD',
      entries[description]![2],
    ])
  expect(found).toHaveLength(7)
})

test('a foreign currency that an entry cannot show is counted once per entry, even if its lines are scattered', async () => {
  // Entry and currency of each line.
  const lines = '1 USD,2,1 GBP,2 USD,3 USD,1 CHF,3,4,3 USD,4'.split(',').map((line) => line.split(' '))
  const rows = lines.map(([EcritureNum, Idevise = '']) => ({
    ...ledger[16]!,
    ...{ EcritureNum: EcritureNum!, Idevise, Debit: '0,00' },
  }))
  const imported = await stage.importRows(rows)
  expect(imported).toMatchObject({ entries: 4, mixedCurrencyEntries: 2 })
  const { rows: found } = await stage.owner.query(
    'select number, currency from grandlivre.entries order by number',
  )
  expect(found.map(({ number, currency }) => `${number} ${currency}`)).toEqual([
    '1 USD',
    '2 EUR',
    '3 USD',
    '4 EUR',
  ])
})

test('payment modes of a cash-basis ledger are recognized', async () => {
  const codes = {
    ...{ CH: 'CHQ', chèque: 'CHQ', Virement: 'VIRT', CB: 'CB', Espèces: 'ESP', PRELEVEMENT: 'PRLV' },
    ...{ LCR: 'LCR', '': null, troc: null },
  }
  const names = [...columns, 'DateRglt', 'ModeRglt', 'NatOp', 'IdClient']
  const rows = Object.keys(codes).flatMap((mode, at) =>
    [ledger[16]!, ledger[17]!].map((row) => ({
      ...row,
      EcritureNum: `${at + 1}`,
      EcritureLib: mode,
      ModeRglt: mode,
    })),
  )
  await stage.importFile(fecFile(rows, { columns: names }))
  const { rows: found } = await stage.owner.query(
    `select distinct m.description, p.code from grandlivre.movements m left join grandlivre.payments p on p.id = m.payment_id`,
  )
  expect(Object.fromEntries(found.map(({ description, code }) => [description, code]))).toEqual(codes)
  expect(await rowCounts(stage.owner)).toMatchObject({ payments: 6 })
})
