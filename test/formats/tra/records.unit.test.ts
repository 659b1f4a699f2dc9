import { expect, test } from 'vitest'
import { LineWriter, layouts } from '../../../src/formats/tra/layouts.ts'
import * as records from '../../../src/formats/tra/records.ts'
import { collectiveAccounts } from '../../../src/formats/tra/third-parties.ts'
import { folder } from '../../support/imports/small-tra.ts'

/**
 * A line with these texts at these columns, from 1, and blanks between them. It ends with the last text, or at
 * `length`.
 */
function laidOut(texts: Record<number, string>, length = 0): string {
  let line = ''
  for (const [column, text] of Object.entries(texts)) line = line.padEnd(Number(column) - 1) + text
  return `${line.padEnd(length)}\r\n`
}
const text = (line: Buffer) => line.toString('latin1')
const right = (value: string, length: number) => value.padStart(length)

const exercice = { id: '9', start: '2023-01-01', end: '2023-12-31', lettering: 'MONO' } as const
const closedBy = { closedById: null, closedByFirstName: null, closedByLastName: null }

const collectives = collectiveAccounts([
  { id: '1', number: '411000', name: 'Clients' },
  { id: '2', number: '401DUPONT', name: 'Dupont' },
])

const account = {
  ...{ id: '1', number: '607000', name: 'Achats', closed: false, company: null, employee: null },
  ...{ counterpartAccount: null, correspondanceAccount: null },
}
const third = { ...account, name: 'Dupont & Fils' }
const party = { ibans: [], miscellaneous: null }
const company = {
  ...{ ...party, name: 'Dupont', siren: '12345678200018', ceo: null, vat: null, address: folder.address },
  ...{ payment: { id: '1', code: 'VIRT' }, apeProducerId: null, apeCode: '4690Z', apeName: null },
  contacts: [
    { firstname: 'Chloé', phoneNumber: '+331' },
    { firstname: 'Jean', phoneNumber: '+332' },
  ],
}
const employee = {
  ...{
    ...party,
    firstName: 'Anaïs',
    lastName: 'Lefèvre',
    email: null,
    phoneNumber: '+333',
    phoneNumberBis: null,
  },
  ...{ nir: null, profession: null, contacts: [], doubtfulAccount: null, address: null, payment: null },
}

const journal = {
  ...{ id: '1', name: 'Journal', code: 'LONG', type: 'BQ' as const, locked: true },
  counterpartAccount: { producerId: '1', number: '512000', name: 'Banque' },
}

const bank = {
  ...{ id: '1', rib: '30004 00512 0001012345X 78', iban: 'FR7630004005120001012345X78', bic: 'BNPAFRPPXXX' },
  account: { producerId: '1', number: '512000', name: 'Banque' },
  ...{ journalId: '1', journalName: 'Banque', journalCode: 'BQ', isDefault: true },
}

const examples: [what: string, line: Buffer, texts: Record<number, string>, length?: number][] = [
  [
    'HEADER',
    records.headerLine('DOS', '2024-04-02T09:05', 'Cabinet Lefèvre & Associés'),
    {
      1: '***S5EXPDOSETE',
      18: '0101190001011900011',
      42: '020420240905Grandlivre',
      89: 'Cabinet Lef\xe8vre & Associ\xe9s',
      137: '01011900001 -',
    },
  ],
  [
    'PS1, with the fields of docs/spec/tra.md#ps1',
    records.ps1Line(folder),
    {
      1: '***PS1Soci\xe9t\xe9 B\xe9r\xe9nice',
      42: 'DES \xc9RABLES',
      77: 'B\xe2timent B',
      147: '75011',
      156: 'PARIS',
      191: 'FRA+33142000000',
      269: 'compta@example.com',
      391: '12345678200018',
      426: 'Paris',
      478: right('50000,00', 20),
    },
  ],
  [
    'PS2: lengths within their bounds, five axes',
    records.ps2Line(
      { general: 20, thirdParty: 0 },
      [
        { codeLength: 2, defaultSectionCode: 'SIEGE' },
        { codeLength: 9, defaultSectionCode: null },
      ],
      '471000',
    ),
    { 1: '***PS2170 60 30 90 30 30 30471000', 113: 'SIEGE' },
  ],
  [
    'PS3: the opening journal and collectives',
    records.ps3Line('AN', collectives),
    { 1: '***PS3', 75: 'AN', 84: '411000', 101: '401000' },
  ],
  ['PS3 of a folder without them', records.ps3Line(null, new Map()), { 1: '***PS3' }],
  [
    'PS5: the accounts of differences of exchange',
    records.ps5Line('476000', '477000', false),
    { 1: '***PS5EUR2X', 15: '476000', 32: '477000', 49: '6,55957', 71: '00107-' },
  ],
  [
    'EXO: closed, opened in detail',
    records.exoLine({ ...exercice, ...closedBy, closedOn: '2024-03-31' }, 1),
    { 1: '***EXO0010101202331122023CDE', 32: 'Exercice au 31122023', 67: 'H', 70: '31032024' },
  ],
  [
    'EXO: open, opened by sums',
    records.exoLine({ ...exercice, ...closedBy, lettering: 'MULTI', closedOn: null }, 12),
    { 1: '***EXO0120101202331122023OUV', 32: 'Exercice au 31122023', 67: 'OAN' },
    77,
  ],
  [
    'ETB: the folder, with the whole street',
    records.etbLine(folder),
    {
      1: '***ETB001Soci\xe9t\xe9 B\xe9r\xe9nice',
      45: '12 bis RUE DES \xc9RABLES',
      80: 'B\xe2timent B',
      150: '75011',
      159: 'PARIS',
      194: 'FRA',
    },
  ],
  [
    'MDP: a code aligned to the right',
    records.mdpLine('CB'),
    { 1: '***MDP CBCarte Bleue', 45: ' CB', 51: '--' },
  ],
  [
    'MDP: an unknown mode is a cheque',
    records.mdpLine('TIP'),
    { 1: '***MDPCHQCh\xe8que', 45: 'CHQ', 51: '--' },
  ],
  ['MDR', records.mdrLine('CB'), { 1: '***MDRCB Carte Bleue', 45: 'ECR  0', 54: ' 1', 82: ' CB100,00' }],
  ['REG', new LineWriter(layouts.REG).line(), { 1: '***REGFRAFrance' }, 44],
  [
    'TVA',
    records.tvaLine('TR', 550),
    { 1: '***TVATR TVA 5,50 %', 45: `FRA${right('5,50', 10)}${right('5,50', 10)}` },
  ],
  [
    'SAT',
    records.satLine('ATELIER', 'Atelier « Nord »', 2),
    { 1: '***SATATELIER', 24: 'Atelier \xab Nord \xbb', 59: 'A2' },
    61,
  ],
  [
    'CRR',
    records.crrLine({ producerId: '1', number: '281830', name: 'Amortissements' }),
    { 1: '***CRR281830', 24: 'Amortissements', 59: 'GE1' },
  ],
  [
    'CGN: an expense, open to the axes of the folder',
    records.cgnLine(account, false, 2),
    { 1: '***CGN607000', 24: 'Achats', 59: 'CHA--XX---' },
  ],
  [
    'CGN: with six axes, to five',
    records.cgnLine(account, false, 6),
    { 1: '***CGN607000', 24: 'Achats', 59: 'CHA--XXXXX' },
  ],
  [
    'CGN: a debtor, lettered and closed',
    records.cgnLine({ ...account, number: '416000', closed: true }, false, 2),
    { 1: '***CGN416000', 24: 'Achats', 59: 'TIDX------', 349: 'X' },
  ],
  [
    'CGN: a collective',
    records.cgnLine({ ...account, number: '401' }, true, 2),
    { 1: '***CGN401', 24: 'Achats', 59: 'COF-------', 350: 'X' },
  ],
  [
    'CGN: without a visible name',
    records.cgnLine({ ...account, name: '\t\n' }, false, 0),
    { 1: '***CGN607000', 24: '607000', 59: 'CHA-------' },
  ],
  [
    'CGN: with its correspondence',
    records.cgnLine(
      { ...account, correspondanceAccount: { producerId: '2', number: '281', name: '' } },
      false,
      0,
    ),
    { 1: '***CGN607000', 24: 'Achats', 59: 'CHA-------', 259: '281' },
  ],
  [
    'CGN: a collective that the folder does not have',
    records.createdCgnLine({ id: null, number: '421000', name: 'Personnel' }),
    { 1: '***CGN421000', 24: 'Personnel', 59: 'COS-------', 350: 'X' },
  ],
  [
    'CAE: a company, with its first contact',
    records.caeLine({ ...third, number: '401DUPONT', company }, { code: '401DUPONT', collective: '4010' }),
    {
      1: '***CAE401DUPONT',
      24: 'Dupont & Fils',
      59: 'FOUX4010',
      267: '12 bis RUE DES \xc9RABLES',
      302: 'B\xe2timent B',
      372: '75011',
      381: 'PARIS',
      463: 'FRA',
      486: '-',
      490: '+331',
      543: 'VIR',
      598: '12345678200018',
      615: '4690Z',
      620: 'Chlo\xe9',
    },
  ],
  [
    'CAE: an employee',
    records.caeLine({ ...third, number: '42100001', employee }, { code: '42100001', collective: '421000' }),
    { 1: '***CAE42100001', 24: 'Dupont & Fils', 59: 'SALX421000', 486: '-', 490: '+333', 620: 'Ana\xefs' },
  ],
  [
    'CAE without details: mandatory fields stay blank',
    records.caeLine({ ...third, number: '4010' }, { code: '4010', collective: '4010' }),
    { 1: '***CAE4010', 24: 'Dupont & Fils', 59: 'FOUX4010', 486: '-' },
    545,
  ],
  [
    'JAL: of a bank',
    records.jalLine(journal, 'LOG'),
    { 1: '***JALLOGJournal', 45: 'BQE', 54: '512000', 74: '-', 495: 'X' },
  ],
  [
    'JAL: of another type, without its counterpart',
    records.jalLine({ ...journal, type: 'A_EXT', locked: false }, 'X'),
    { 1: '***JALX', 10: 'Journal', 45: 'OD', 54: ' '.repeat(17), 74: '-', 516: 'X' },
  ],
  [
    'RIB: split into its parts',
    records.ribLine(bank, 1),
    {
      1: '***RIB512000',
      24: '     1X30004005120001012345X78',
      119: 'BNPAFRPPXXX',
      157: '---FR7630004005120001012345X78',
      234: '30004',
      242: '0001012345X',
    },
  ],
  ...[null, '', '30004', 'n/a'].map((rib): (typeof examples)[number] => [
    `RIB: ${rib} is not one`,
    records.ribLine({ ...bank, rib, account: null, isDefault: false }, 12),
    { 1: '***RIB', 24: '    12-', 119: 'BNPAFRPPXXX', 157: '---FR7630004005120001012345X78' },
  ]),
]

test.each(examples)('the record is written: %s', (_, line, texts, length) => {
  expect(text(line)).toBe(laidOut(texts, length))
})

test('a CGN record refuses a number of 18 digits', () => {
  expect(() => records.cgnLine({ ...account, number: '607000000000000018' }, false, 0)).toThrow(
    'CGN.CODE of a TRA file',
  )
})

test('DEV records list euro, franc, then the currencies of entries', () => {
  const rates = { USD: '0.923400', EUR: '1', JPY: '0.006100' }
  const lines = records.devLines(new Map(Object.entries(rates))).map(text)
  const dev = (code: string, name: string, decimals: string, parity: string, mark: string) =>
    laidOut({
      1: `***DEV${code}${name}`,
      48: `-${decimals}`,
      56: `${mark}${right(parity, 20)}${code}${mark}`,
    })
  expect(lines).toEqual([
    dev('EUR', 'euro', '2', '1', 'X'),
    dev('FRF', 'franc fran\xe7ais', '2', '6,55957', 'X'),
    dev('JPY', 'yen japonais', '0', '0,006100', '-'),
    dev('USD', 'dollar des \xc9tats-Unis', '2', '0,923400', '-'),
  ])
})
