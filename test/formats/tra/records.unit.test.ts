import { describe, expect, test } from 'vitest'
import {
  caeLine,
  cgnLine,
  createdCgnLine,
  crrLine,
  devLines,
  etbLine,
  exoLine,
  headerLine,
  jalLine,
  mdpLine,
  mdrLine,
  ps1Line,
  ps2Line,
  ps3Line,
  ps5Line,
  regLine,
  ribLine,
  satLine,
  tvaLine,
} from '../../../src/formats/tra/records.ts'
import { collectiveAccounts } from '../../../src/formats/tra/third-parties.ts'
import { folder } from '../../support/imports/small-tra.ts'

/** A line with these texts at these columns, from 1, blanks between, ending with the last of them or at `length`. */
function laidOut(texts: Record<number, string>, length = 0): string {
  let line = ''
  for (const [column, text] of Object.entries(texts)) line = line.padEnd(Number(column) - 1) + text
  return `${line.padEnd(length)}\r\n`
}
const text = (line: Buffer) => line.toString('latin1')
const right = (value: string, length: number) => value.padStart(length)

test('HEADER', () => {
  const line = headerLine('DOS', '2024-04-02T09:05', 'Cabinet Lefèvre & Associés')
  expect(text(line)).toBe(
    laidOut({
      1: '***S5EXPDOSETE',
      18: '0101190001011900011',
      42: '020420240905Grandlivre',
      89: 'Cabinet Lef\xe8vre & Associ\xe9s',
      137: '01011900001 -',
    }),
  )
})

test('PS1, as docs/spec/tra.md#ps1 lists it', () => {
  expect(text(ps1Line(folder))).toBe(
    laidOut({
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
    }),
  )
})

test('PS2: lengths within their bounds, five axes', () => {
  const axes = [
    { codeLength: 2, defaultSectionCode: 'SIEGE' },
    { codeLength: 9, defaultSectionCode: null },
  ]
  const line = ps2Line({ general: 20, thirdParty: 0 }, axes, '471000')
  expect(text(line)).toBe(laidOut({ 1: '***PS2170 60 30 90 30 30 30471000', 113: 'SIEGE' }))
})

test('PS3 and PS5: the values of the folder', () => {
  const collectives = collectiveAccounts([
    { id: '1', number: '411000', name: 'Clients' },
    { id: '2', number: '401DUPONT', name: 'Dupont' },
  ])
  expect(text(ps3Line('AN', collectives))).toBe(
    laidOut({ 1: '***PS3', 75: 'AN', 84: '411000', 101: '401000' }),
  )
  expect(text(ps3Line(null, new Map()))).toBe('***PS3\r\n')
  const line = ps5Line('476000', '477000', false)
  expect(text(line)).toBe(
    laidOut({
      1: '***PS5EUR2X',
      15: '476000',
      32: '477000',
      49: '6,55957',
      71: '00107-',
    }),
  )
})

test('EXO: open and closed, in detail and as sums', () => {
  const exercice = { id: '9', start: '2023-01-01', end: '2023-12-31', lettering: 'MONO' } as const
  const by = { closedById: null, closedByFirstName: null, closedByLastName: null }
  expect(text(exoLine({ ...exercice, ...by, closedOn: '2024-03-31' }, 1))).toBe(
    laidOut({ 1: '***EXO0010101202331122023CDE', 32: 'Exercice au 31122023', 67: 'H', 70: '31032024' }),
  )
  expect(text(exoLine({ ...exercice, ...by, lettering: 'MULTI', closedOn: null }, 12))).toBe(
    laidOut({ 1: '***EXO0120101202331122023OUV', 32: 'Exercice au 31122023', 67: 'OAN' }, 77),
  )
})

test('ETB: the folder, with the whole street', () => {
  expect(text(etbLine(folder))).toBe(
    laidOut({
      1: '***ETB001Soci\xe9t\xe9 B\xe9r\xe9nice',
      45: '12 bis RUE DES \xc9RABLES',
      80: 'B\xe2timent B',
      150: '75011',
      159: 'PARIS',
      194: 'FRA',
    }),
  )
})

test('MDP and MDR: payment codes aligned to the right; an unknown one is a cheque', () => {
  expect(text(mdpLine('CB'))).toBe(laidOut({ 1: '***MDP CBCarte Bleue', 45: ' CB', 51: '--' }))
  expect(text(mdpLine('TIP'))).toBe(laidOut({ 1: '***MDPCHQCh\xe8que', 45: 'CHQ', 51: '--' }))
  expect(text(mdrLine('CB'))).toBe(
    laidOut({ 1: '***MDRCB Carte Bleue', 45: 'ECR  0', 54: ' 1', 82: ' CB100,00' }),
  )
})

test('DEV: euro, franc, then the currencies of entries', () => {
  const lines = devLines(
    new Map([
      ['USD', '0.923400'],
      ['EUR', '1'],
      ['JPY', '0.006100'],
    ]),
  ).map(text)
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

test('REG, TVA, SAT, CRR', () => {
  expect(text(regLine())).toBe(laidOut({ 1: '***REGFRAFrance' }, 44))
  expect(text(tvaLine('TR', 550))).toBe(
    laidOut({ 1: '***TVATR TVA 5,50 %', 45: `FRA${right('5,50', 10)}${right('5,50', 10)}` }),
  )
  expect(text(satLine('ATELIER', 'Atelier « Nord »', 2))).toBe(
    laidOut({ 1: '***SATATELIER', 24: 'Atelier \xab Nord \xbb', 59: 'A2' }, 61),
  )
  expect(text(crrLine({ producerId: '1', number: '281830', name: 'Amortissements' }))).toBe(
    laidOut({ 1: '***CRR281830', 24: 'Amortissements', 59: 'GE1' }),
  )
})

describe('CGN', () => {
  const account = {
    id: '1',
    number: '607000',
    name: 'Achats',
    closed: false,
    counterpartAccount: null,
    correspondanceAccount: null,
    company: null,
    employee: null,
  }

  test.each([
    [
      'an expense, open to the axes of the folder',
      account,
      false,
      2,
      { 1: '***CGN607000', 24: 'Achats', 59: 'CHA--XX---' },
    ],
    ['with six axes, to five', account, false, 6, { 1: '***CGN607000', 24: 'Achats', 59: 'CHA--XXXXX' }],
    [
      'a debtor, lettered and closed',
      { ...account, number: '416000', closed: true },
      false,
      2,
      {
        1: '***CGN416000',
        24: 'Achats',
        59: 'TIDX------',
        349: 'X',
      },
    ],
    [
      'a collective',
      { ...account, number: '401' },
      true,
      2,
      { 1: '***CGN401', 24: 'Achats', 59: 'COF-------', 350: 'X' },
    ],
    [
      'without a visible name',
      { ...account, name: '\t\n' },
      false,
      0,
      { 1: '***CGN607000', 24: '607000', 59: 'CHA-------' },
    ],
    [
      'with its correspondence',
      { ...account, correspondanceAccount: { producerId: '2', number: '281', name: '' } },
      false,
      0,
      {
        1: '***CGN607000',
        24: 'Achats',
        59: 'CHA-------',
        259: '281',
      },
    ],
  ])('%s', (_, of, isCollective, axes, expected) => {
    expect(text(cgnLine(of, isCollective, axes))).toBe(laidOut(expected))
  })

  test('a collective that the folder does not have', () => {
    expect(text(createdCgnLine({ id: null, number: '421000', name: 'Personnel' }))).toBe(
      laidOut({ 1: '***CGN421000', 24: 'Personnel', 59: 'COS-------', 350: 'X' }),
    )
  })

  test('a number of 18 digits is refused', () => {
    expect(() => cgnLine({ ...account, number: '607000000000000018' }, false, 0)).toThrow(
      'CGN.CODE of a TRA file',
    )
  })
})

describe('CAE', () => {
  const third = {
    id: '1',
    name: 'Dupont & Fils',
    closed: false,
    counterpartAccount: null,
    correspondanceAccount: null,
  }
  const known = {
    payment: { id: '1', code: 'VIRT' },
    address: folder.address,
    ibans: [],
    miscellaneous: null,
  }
  test('a company, with its first contact', () => {
    const company = {
      ...known,
      name: 'Dupont',
      siren: '12345678200018',
      ceo: null,
      ...{ apeProducerId: null, apeCode: '4690Z', apeName: null },
      vat: null,
      contacts: [
        { firstname: 'Chloé', phoneNumber: '+331' },
        { firstname: 'Jean', phoneNumber: '+332' },
      ],
    }
    expect(
      text(
        caeLine(
          { ...third, number: '401DUPONT', company, employee: null },
          { code: '401DUPONT', collective: '4010' },
        ),
      ),
    ).toBe(
      laidOut({
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
      }),
    )
  })

  test('an employee', () => {
    const employee = {
      ...known,
      firstName: 'Anaïs',
      lastName: 'Lefèvre',
      email: null,
      phoneNumber: '+333',
      phoneNumberBis: null,
      nir: null,
      profession: null,
      contacts: [],
      doubtfulAccount: null,
      address: null,
      payment: null,
    }
    expect(
      text(
        caeLine(
          { ...third, number: '42100001', company: null, employee },
          { code: '42100001', collective: '421000' },
        ),
      ),
    ).toBe(
      laidOut({
        1: '***CAE42100001',
        24: 'Dupont & Fils',
        59: 'SALX421000',
        486: '-',
        490: '+333',
        620: 'Ana\xefs',
      }),
    )
  })

  test('one without details: mandatory fields stay blank', () => {
    expect(
      text(
        caeLine(
          { ...third, number: '4010', company: null, employee: null },
          { code: '4010', collective: '4010' },
        ),
      ),
    ).toBe(laidOut({ 1: '***CAE4010', 24: 'Dupont & Fils', 59: 'FOUX4010', 486: '-' }, 545))
  })
})

test('JAL', () => {
  const counterpartAccount = { producerId: '1', number: '512000', name: 'Banque' }
  const journal = {
    id: '1',
    name: 'Journal',
    code: 'LONG',
    type: 'BQ' as const,
    counterpartAccount,
    locked: true,
  }
  const blank = ' '.repeat(17)
  expect(text(jalLine(journal, 'LOG'))).toBe(
    laidOut({ 1: '***JALLOGJournal', 45: 'BQE', 54: '512000', 74: '-', 495: 'X' }),
  )
  expect(text(jalLine({ ...journal, type: 'A_EXT', locked: false }, 'X'))).toBe(
    laidOut({ 1: '***JALX', 10: 'Journal', 45: 'OD', 54: blank, 74: '-', 516: 'X' }),
  )
})

describe('RIB', () => {
  const bank = {
    id: '1',
    rib: '30004 00512 0001012345X 78',
    iban: 'FR7630004005120001012345X78',
    bic: 'BNPAFRPPXXX',
    account: { producerId: '1', number: '512000', name: 'Banque' },
    journalId: '1',
    journalName: 'Banque',
    journalCode: 'BQ',
    isDefault: true,
  }

  test('is split into its parts', () => {
    expect(text(ribLine(bank, 1))).toBe(
      laidOut({
        1: '***RIB512000',
        24: '     1X30004005120001012345X78',
        119: 'BNPAFRPPXXX',
        157: '---FR7630004005120001012345X78',
        234: '30004',
        242: '0001012345X',
      }),
    )
  })

  test.each([null, '', '30004', 'n/a'])('%s is not a RIB', (rib) => {
    expect(text(ribLine({ ...bank, rib, account: null, isDefault: false }, 12))).toBe(
      laidOut({ 1: '***RIB', 24: '    12-', 119: 'BNPAFRPPXXX', 157: '---FR7630004005120001012345X78' }),
    )
  })
})
