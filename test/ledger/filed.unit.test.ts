/** The fields that are stored with a line: none that can be derived from the ledger, and none that the entry stores. */
import { expect, test } from 'vitest'
import { asJson, type Field, fieldsApart, noFields, sharedFields } from '../../src/ledger/fec/filed.ts'
import type { DatedLine } from '../../src/ledger/fec/survey/entries.ts'

const line: DatedLine = {
  number: 2,
  journalCode: 'HA',
  journalName: 'Achats',
  entryNumber: '7',
  date: '2023-01-31',
  accountNumber: '401000',
  accountName: 'Fournisseurs',
  thirdPartyNumber: 'FIT',
  thirdPartyName: 'Fit',
  pieceReference: 'F 12',
  pieceDate: '2023-01-31',
  description: 'Café',
  debit: 0n,
  credit: 12_000n,
  letteringCode: 'B',
  letteredOn: undefined,
  validatedOn: '2023-02-28',
  amountInCurrency: undefined,
  amountInCurrencyAsFiled: '',
  currency: undefined,
  currencyAsFiled: '',
  settledOn: undefined,
  paymentMode: '',
  operationNature: '',
  clientId: '',
  further: [],
}
const ledger = {
  entry: { number: '7', date: '2023-01-31', validatedAt: '2023-02-28' },
  journal: { label: 'Achats' },
  account: { filedName: 'Fournisseurs', auxiliaryNumber: 'FIT', auxiliaryName: 'Fit' },
}

test('nothing is stored for a line that can be rebuilt from the ledger', () => {
  expect(fieldsApart(line, ledger, [], noFields)).toEqual([])
  expect(asJson([])).toBeNull()
})

test('every other field is stored under the name of its column, in the standard form', () => {
  const other: DatedLine = {
    ...line,
    ...{ journalName: 'ACHATS', entryNumber: '', date: '2023-01-01', originalDate: '2022-06-15' },
    ...{ accountName: '', thirdPartyNumber: 'X', thirdPartyName: 'x', pieceDate: undefined },
    ...{
      letteredOn: '2023-03-01',
      validatedOn: undefined,
      amountInCurrencyAsFiled: '-10,5',
      currencyAsFiled: '€',
    },
    ...{
      settledOn: '2023-04-01',
      paymentMode: 'CH',
      operationNature: 'B',
      clientId: '7',
      further: ['', 'r"1'],
    },
  }
  const fields = fieldsApart(other, ledger, ['PJ', '__proto__'], noFields)
  expect(asJson(fields)).toBe(
    '{"JournalLib":"ACHATS","EcritureNum":"","EcritureDate":"20220615","CompteLib":"","CompAuxNum":"X","CompAuxLib":"x",' +
      '"PieceDate":"","DateLet":"20230301","ValidDate":"","Montantdevise":"-10,5","Idevise":"€","DateRglt":"20230401",' +
      '"ModeRglt":"CH","NatOp":"B","IdClient":"7","__proto__":"r\\"1"}',
  )
  // A blank number is stored even if the entry has no number: the ledger may give it one.
  const unnumbered = { ...ledger, entry: { ...ledger.entry, number: null } }
  expect(fieldsApart({ ...line, entryNumber: '' }, unnumbered, [], noFields)).toEqual([['EcritureNum', '']])
})

test('fields that all lines of an entry share are stored once, with the entry', () => {
  const fields: Field[][] = [
    [
      ['PieceDate', '20230130'],
      ['DateLet', '20230301'],
      ['NatOp', 'B'],
    ],
    [
      ['NatOp', 'S'],
      ['DateLet', '20230301'],
      ['PieceDate', '20230130'],
    ],
  ]
  expect([...sharedFields(fields, true)]).toEqual([
    ['PieceDate', '20230130'],
    ['DateLet', '20230301'],
  ])
  expect([...sharedFields(fields, false)]).toEqual([['PieceDate', '20230130']])
  expect([...sharedFields([...fields, []], true)]).toEqual([])
})

test('a blank number in the first line is stored with the entry, even if the ledger gives the entry a number', () => {
  const blank: Field[] = [['EcritureNum', '']]
  for (const isWhole of [true, false])
    expect([...sharedFields([blank, [['EcritureNum', '7']]], isWhole)]).toEqual(blank)
  expect([...sharedFields([[['EcritureNum', '7']], blank], true)]).toEqual([])
})

test('a later line of an entry stores only its differences from the shared fields', () => {
  const shared = new Map([
    ['PieceDate', '20230130'],
    ['ValidDate', ''],
  ])
  expect(fieldsApart(line, ledger, [], shared)).toEqual([
    ['PieceDate', '20230131'],
    ['ValidDate', '20230228'],
  ])
  const same = { ...line, pieceDate: '2023-01-30', validatedOn: undefined }
  expect(fieldsApart(same, ledger, [], shared)).toEqual([])
})
