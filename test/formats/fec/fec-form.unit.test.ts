/** The check of a FEC's form, on which other tests rely, finds everything that the law does not allow. */
import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { readFixture } from '../../support/fixtures/fixture-files.ts'
import { checkFecForm } from '../../support/plain/fec-form.ts'

const name = '123456789FEC20231231.txt'
const [header, ...golden] = readFixture('ledger.fec-out.txt').toString('latin1').split('\r\n').slice(0, -1)
/** Three entries of two journals, numbered from 1. */
const lines = golden.slice(0, 7)
const check = (rows: string[], file = name) =>
  checkFecForm(file, Buffer.from([header, ...rows].map((row) => `${row}\r\n`).join(''), 'latin1'))

const changed = (at: number, column: number, value: string) =>
  lines.map((line, index) => (index === at ? line.split('\t').with(column, value).join('\t') : line))

test('a correct file has no finding', () => {
  expect(check(lines)).toMatchObject({ findings: [], blanks: { PieceRef: 2 } })
})

test.each<[string, string[], string?]>([
  ['name FEC.txt', lines, 'FEC.txt'],
  ['name 123456789FEC2023123.txt', lines, '123456789FEC2023123.txt'],
  ['line 2: EcritureDate "20230631" is not a day', changed(0, 3, '20230631')],
  ['line 2: PieceDate "2023-06-30" is not a day', changed(0, 9, '2023-06-30')],
  ['line 2: EcritureLib " x" begins or ends with a blank', changed(0, 10, ' x')],
  ['line 3: Credit "834.81" is not an amount', changed(1, 12, '834.81')],
  ['line 3: Debit or Credit "0" has not two decimals', changed(1, 11, '0')],
  ['line 3: Debit and Credit 1,00 and 834,81', changed(1, 11, '1,00')],
  ['line 3: Montantdevise and Idevise go together', changed(1, 16, '12')],
  ['line 3: 17 fields', lines.map((line, at) => (at === 1 ? line.slice(0, line.lastIndexOf('\t')) : line))],
  ['line 3: control character', changed(1, 10, 'a\x01b')],
  ['line 3: control character', changed(1, 10, 'a\nb')],
  ['line 3: control character', changed(1, 10, 'a\x85b')],
  ['entry VE 1 does not balance: 1', changed(1, 12, '834,80')],
  ['the file does not balance: 1', changed(1, 12, '834,80')],
  ['entry VE 1: several ValidDate', changed(1, 15, '20230711')],
  ['journal CRA: no entry 2', lines.map((line) => line.replace('Agricole\t2', 'Agricole\t3'))],
  ['an entry after 20230630', lines, '123456789FEC20230630.txt'],
])('reports the finding: %s', (finding, rows, file) => {
  expect(check(rows, file).findings).toContain(finding)
})

test('wrong columns, line ends and encodings are reported', () => {
  const bytes = (text: string) => checkFecForm(name, Buffer.from(text, 'latin1')).findings
  const whole = `${header}\r\n${lines.join('\r\n')}\r\n`
  expect(bytes(whole)).toEqual([])
  expect(bytes(whole.replace('JournalCode\tJournalLib', 'JournalLib\tJournalCode'))[0]).toMatch(
    /^line 1: columns/,
  )
  expect(bytes(whole.replace('Idevise\r\n', 'Idevise\tIdevise\r\n'))).toContain('line 1: a column twice')
  expect(bytes(whole.slice(0, -2))).toContain('the last line has no CR LF')
  expect(checkFecForm(name, Buffer.from(whole, 'latin1'), 'utf-8').findings).toContain('not UTF-8')
})
