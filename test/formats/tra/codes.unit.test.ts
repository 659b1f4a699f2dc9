import { describe, expect, test } from 'vitest'
import { partyKind } from '../../../src/formats/items/accounts/parties.ts'
import type { FiledAccount } from '../../../src/formats/rows.ts'
import { isPlainLettering, letteringCodes, shortCodes } from '../../../src/formats/tra/codes.ts'
import { countryCode } from '../../../src/formats/tra/records.ts'
import {
  accountNature,
  collectiveAccounts,
  journalNature,
  thirdParties,
} from '../../../src/formats/tra/third-parties.ts'

const coded = (codes: string[]) => codes.map((code, at) => ({ id: String(1000 + at), code }))
/** The written code of each item. It must not depend on the order of the codes. */
const shortened = (codes: string[], record: 'JAL' | 'SAT' = 'JAL') => {
  const items = coded(codes)
  const written = shortCodes(items, record)
  expect(Object.fromEntries(shortCodes(items.toReversed(), record))).toEqual(Object.fromEntries(written))
  expect(new Set(written.values()).size).toBe(codes.length)
  return items.map(({ id }) => written.get(id))
}

describe('a journal has a code of three characters', () => {
  test.each([
    ['its own, if it fits', ['AC', 'BQ2', 'X', 'ac'], ['AC', 'BQ2', 'X', 'ac']],
    ['its beginning and its last character', ['AC01', 'AC02', 'PAIE'], ['AC1', 'AC2', 'PAE']],
    ['another, if a journal has that one', ['AC1', 'AC01'], ['AC1', 'AC0']],
    [
      'with a number, if that is taken as well',
      ['AC01', 'AC11', 'AC21', 'AC0'],
      ['AC1', 'AC2', 'AC3', 'AC0'],
    ],
    ['not one that Windows-1252 would turn into another', ['ЖО', 'ЖЖ', 'É'], ['1', '0', 'E']],
    ['not one that blanks would hide', ['A ', ' A', 'A', ' '], ['A1', 'A0', 'A', '0']],
  ])('%s', (_, codes, expected) => {
    expect(shortened(codes)).toEqual(expected)
  })

  test('even in a folder with 1,500 journals whose codes begin alike', () => {
    const written = shortened(Array.from({ length: 1500 }, (_, at) => `JOURNAL${at}`))
    expect(written.every((code) => /^[0-9A-Z]{3}$/.test(code!))).toBe(true)
  })
})

test('codes of sections have at most 17 characters', () => {
  const long = 'CHANTIER-2024-000'
  expect(shortened([long, `${long}1`, `${long}2`], 'SAT')).toEqual([
    long,
    'CHANTIER20240001',
    'CHANTIER20240002',
  ])
})

describe('lettering codes', () => {
  const written = (codes: string[]) => {
    const forward = letteringCodes(codes)
    expect(Object.fromEntries(letteringCodes(codes.toReversed()))).toEqual(Object.fromEntries(forward))
    expect(new Set(forward.values()).size).toBe(new Set(codes).size)
    return codes.map((code) => forward.get(code)!)
  }

  test('of four characters or fewer are kept, in upper case', () => {
    expect(written(['AAAA', 'b', 'C1', 'zz'])).toEqual(['AAAA', 'B', 'C1', 'ZZ'])
  })

  test('that are longer become four letters, different for each', () => {
    for (const code of written(['LETTRAGE1', 'LETTRAGE2', 'AAAAA'])) expect(code).toMatch(/^[A-Z]{4}$/)
  })

  test('that differ only in case remain different', () => {
    const [upper, lower] = written(['AB', 'ab'])
    expect(upper).toBe('AB')
    expect(lower).toMatch(/^[A-Z]{4}$/)
  })

  test('that are not plain text, or contain blanks, become letters', () => {
    for (const code of written(['é', 'А', 'A B', ' A', '😀', '\t'])) expect(code).toMatch(/^[A-Z]{4}$/)
    expect(['AAAA', 'a-1', 'ABCDE', 'é', 'A B', ''].map(isPlainLettering)).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
    ])
  })

  test('mostly stay the same when their account gets another lettering', () => {
    const codes = Array.from({ length: 500 }, (_, at) => `LETTRAGE${at}`)
    const before = letteringCodes(codes)
    const after = letteringCodes([...codes, 'AAAAAA'])
    expect(codes.filter((code) => before.get(code) !== after.get(code)).length).toBeLessThan(3)
  })

  test('can use every combination of letters; after that the export fails with a reason', () => {
    const four = 26 ** 4
    const plain = Array.from({ length: four - 1 }, (_, at) =>
      Array.from({ length: 4 }, (_, position) =>
        String.fromCharCode(65 + (Math.floor(at / 26 ** position) % 26)),
      ).join(''),
    )
    expect(letteringCodes([...plain, 'LONGER']).get('LONGER')).toBe('ZZZZ')
    expect(() => letteringCodes([...plain, 'LONGER', 'LONGEST'])).toThrow('ENTRY.LETTRAGE of a TRA file')
  })
})

test.each<[nature: string, isCollective: boolean, ...numbers: string[]]>([
  ['DIV', false, '101000', '164000', '370000', '445660', '428000', '467000', '471000', '580000', 'ABC'],
  ['IMO', false, '218300'],
  ['COF', true, '401000'],
  ['COC', true, '411000'],
  ['COS', true, '421000'],
  ['COD', true, '455000'],
  ['TIC', false, '404000'],
  ['TID', false, '416000'],
  ['BQE', false, '512000'],
  ['CAI', false, '530000'],
  ['CHA', false, '607000'],
  ['PRO', false, '707000'],
  ['EXT', false, '890000', '901000'],
])('accounts of nature %s, collective: %s, are written as %s', (nature, isCollective, ...numbers) => {
  expect(numbers.map((number) => accountNature(number, isCollective))).toEqual(numbers.map(() => nature))
})

test.each([
  ['ACH', 'ACH'],
  ['VTE', 'VTE'],
  ['BQ', 'BQE'],
  ['CAISSE', 'CAI'],
  ['AN', 'ANO'],
  ['OD_EXC', 'EXT'],
  ...['A_EXT', 'EXT', 'NFD', 'RBAL', 'OD', 'OD_AUDIT', 'OD_PAIE', 'OD_LET', 'OD_DECL_FISCALE'].map((type) => [
    type,
    'OD',
  ]),
])('a journal of type %s is written as %s', (type, nature) => {
  expect(journalNature(type!)).toBe(nature)
})

describe('the collective account of third parties', () => {
  const collectives = (...numbers: string[]) =>
    Object.fromEntries(
      [...collectiveAccounts(numbers.map((number, at) => ({ id: String(at + 1), number, name: 'N' })))].map(
        ([root, { id, number }]) => [root, `${number} ${id ?? 'new'}`],
      ),
    )

  test.each([
    ['the root and zeros', ['401DUPONT', '401000', '607000'], { supplier: '401000 2' }],
    ['the shortest of several, in any order', ['4110000', '411', '41100'], { customer: '411 2' }],
    [
      'a new one, if there is none',
      ['401DUPONT', '4010001', '421X'],
      { supplier: '401000 new', employee: '421000 new' },
    ],
    ['found after third parties', ['411A', '4110', '411B'], { customer: '4110 2' }],
    ['none, for a root without third parties', ['404000', '512000', '4090'], {}],
  ])('is %s', (_, numbers, expected) => {
    expect(collectives(...numbers)).toEqual(expected)
  })

  test('third parties have one of three roots', () => {
    expect(['401', '4011', '411X', '42100', '422', '408', '4'].map(partyKind)).toEqual([
      'supplier',
      'supplier',
      'customer',
      'employee',
      undefined,
      undefined,
      undefined,
    ])
  })
})

test.each([
  ['FRANCE', 'FRA'],
  ['France', 'FRA'],
  ['fr', 'FRA'],
  ['FRA', 'FRA'],
  ['Royaume-Uni', 'GBR'],
  ['ETATS UNIS', 'USA'],
  ['Germany', 'DEU'],
  ['Allemagne', 'DEU'],
  ["Côte d'Ivoire", 'CIV'],
  ['La Réunion', 'REU'],
  ['Atlantide', 'ATL'],
  ['', ''],
  ['Россия', ''],
  [null, ''],
])('the country %s is written as %s', (country, code) => {
  expect(countryCode(country)).toBe(code)
})

describe('third parties', () => {
  const account = (number: string, filed: [string, string?] | [] = []): FiledAccount => {
    const [filedNumber = null, auxiliaryNumber = null] = filed
    const filedName = filedNumber && 'F'
    const ofFec = { filedNumber, filedName, auxiliaryNumber, auxiliaryName: null }
    return { id: number, number, name: 'N', ...ofFec }
  }
  const found = (...accounts: FiledAccount[]) => {
    const { collectives, byAccount, ofRoots } = thirdParties(accounts)
    return {
      collectives: collectives.map(({ id, number, name }) => [id, number, name]),
      of: [...byAccount].map(([id, { code, collective }]) => [id, code, collective]),
      ofRoots: [...ofRoots].map(([kind, { number }]) => [kind, number]),
    }
  }

  test('belong to the account that they were filed with; the file adds this account if the folder has none', () => {
    expect(found(account('411A', ['411100', 'A']), account('411B', ['411.70é', 'B']))).toEqual({
      collectives: [
        [null, '411100', 'F'],
        [null, '41170E', 'F'],
      ],
      of: [
        ['411A', '411A', '411100'],
        ['411B', '411B', '41170E'],
      ],
      ofRoots: [],
    })
    const own = found(account('411000', ['411000']), account('411A', ['411000', 'A']), account('411Z'))
    expect(own).toEqual({
      collectives: [['411000', '411000', 'N']],
      of: [
        ['411000', '411000', '411000'],
        ['411A', '411A', '411000'],
        ['411Z', '411Z', '411000'],
      ],
      ofRoots: [['customer', '411000']],
    })
    // The file adds a collective account once, even if it has two reasons to add it.
    expect(found(account('401A', ['401000', 'A']), account('401Z')).collectives).toEqual([
      [null, '401000', 'F'],
    ])
  })

  test('do not take another third party for their collective account, even if it has that number', () => {
    expect(
      found(account('411100', ['411000', '411100']), account('411C', ['411100', 'C'])).collectives,
    ).toEqual([
      [null, '411000', 'F'],
      [null, '411100', 'F'],
    ])
  })

  test('with a number over 17 characters get their auxiliary number, if only one account claims it', () => {
    const long = (auxiliary: string, collective = '411000') =>
      account(`411${auxiliary}${'0'.repeat(15)}`, [collective, auxiliary])
    const codes = (...accounts: FiledAccount[]) => found(...accounts).of.map(([, code]) => code)
    expect(codes(long('ab-1'), account('411C', ['411000', 'C']))).toEqual(['ab-1', '411C'])
    const both = [long('A'), { ...long('A', '411100'), id: 'other' }]
    expect(codes(...both)).toEqual(both.map(({ number }) => number))
    expect(codes(long('411X'), account('411X'))).toEqual([long('411X').number, '411X'])
    for (const odd of ['a b', 'é', 'x'.repeat(18)]) expect(codes(long(odd))).toEqual([long(odd).number])
  })
})
