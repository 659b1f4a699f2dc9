import { describe, expect, test } from 'vitest'
import { inUnits } from '../../../src/formats/minor-units.ts'
import { bareLine, LineWriter, layouts, TraOverflow } from '../../../src/formats/tra/layouts.ts'

const text = (line: Buffer) => line.toString('latin1')
/** Columns of a line, from 1, both inclusive. */
const columns = (line: Buffer, from: number, to: number) => text(line).slice(from - 1, to)

describe('a line', () => {
  test('has each value in its columns, and ends with CR LF', () => {
    const line = new LineWriter(layouts.PS1)
      .text('NOM', 'Établissements')
      .text('VILLE', null)
      .amount('CAPITAL', 5_000_000n)
      .line()
    expect(text(line)).toBe(`***PS1${'\xc9tablissements'.padEnd(471)}${'50000,00'.padStart(20)}\r\n`)
  })

  test('is cut after its last column that is not blank', () => {
    expect(text(new LineWriter(layouts.PS1).text('NOM', 'Société').line())).toBe('***PS1Soci\xe9t\xe9\r\n')
  })

  test('is never cut before its last mandatory column', () => {
    expect(text(new LineWriter(layouts.SAT).text('CODE', 'A').line())).toBe(`***SATA${' '.repeat(54)}\r\n`)
  })

  test('has the empty date and the boolean "no" in fields without a value', () => {
    const line = new LineWriter(layouts.ENTRY).date('DATECOMPTABLE', '2024-02-29').line()
    expect(columns(line, 4, 11)).toBe('29022024')
    expect(columns(line, 122, 129)).toBe('01011900')
    expect(columns(line, 1400, 1407)).toBe('01011900')
    expect(columns(new LineWriter(layouts.CGN).line(), 62, 68)).toBe('-------')
  })

  test('keeps nothing of the former value of a field that is written again', () => {
    const line = new LineWriter(layouts.REG).text('LIBELLE', 'a long name').text('LIBELLE', 'short').line()
    expect(columns(line, 10, 44)).toBe('short'.padEnd(35))
  })

  test('has the minute at which the file was made in its header', () => {
    const line = new LineWriter(layouts.HEADER).date('DATE/HEURE', '2024-03-09T07:05').line()
    expect(columns(line, 42, 53)).toBe('090320240705')
  })
})

test('a record without any value is only its identifier', () => {
  expect(text(bareLine(layouts.SOU))).toBe('***SOU\r\n')
})

describe('text', () => {
  test.each([
    ['200 characters', 'Ab'.repeat(100), 'Ab'.repeat(17).concat('A')],
    ['tabs and line breaks', 'a\tb\r\nc\0d', 'a b c d'],
    ['emoji at the edge', `${'x'.repeat(34)}😀😀`, `${'x'.repeat(34)}?`],
    ['combining accents at the edge', `${'x'.repeat(34)}e\u0301e\u0301`, `${'x'.repeat(34)}\xe9`],
    ['Cyrillic', 'Привет', '??????'],
  ])('fills exactly the columns of its field: %s', (_, name, expected) => {
    const line = new LineWriter(layouts.JAL).text('LIBELLE', name).line()
    expect(columns(line, 10, 44)).toBe(expected.padEnd(35))
    expect(columns(line, 45, 73)).toBe(' '.repeat(29))
  })
})

describe('numbers', () => {
  test.each([
    [0n, '0,00'],
    [5n, '0,05'],
    [-5n, '-0,05'],
    [120_000n, '1200,00'],
    [-123_456n, '-1234,56'],
    [999_999_999_999_999_999n, '9999999999999999,99'],
    [-999_999_999_999_999_999n, '-9999999999999999,99'],
  ])('%s hundredths are written as %s', (minor, expected) => {
    expect(inUnits(minor, ',')).toBe(expected)
    expect(columns(new LineWriter(layouts.ENTRY).amount('MONTANT1', minor).line(), 131, 150)).toBe(
      expected.padStart(20),
    )
  })

  test.each([
    [99_999_999_999_999_999_999n, 'MONTANT1', '999999999999999999,99'],
    [-9_999_999_999_999_999_999n, 'MONTANT2', '-99999999999999999,99'],
  ])('%s does not fit its field: it is refused, never cut', (minor, field, shown) => {
    const refused = () => new LineWriter(layouts.ENTRY).amount(field, minor)
    expect(refused).toThrow(TraOverflow)
    expect(refused).toThrow(`ENTRY.${field} of a TRA file has 20 columns and cannot hold "${shown}"`)
  })
})

describe('a key that other lines refer to', () => {
  test('fills its field to the last column', () => {
    expect(columns(new LineWriter(layouts.CGN).key('CODE', '12345678901234567').line(), 7, 24)).toBe(
      '12345678901234567 ',
    )
  })

  test('is refused if it does not fit, because a cut key could name another account', () => {
    const number = '411000000000000018'
    const refused = () => new LineWriter(layouts.CAE).key('CODE', number)
    expect(refused).toThrow(`CAE.CODE of a TRA file has 17 columns and cannot hold "${number}"`)
    expect(() => new LineWriter(layouts.CAE).key('CODE', '4'.repeat(400))).toThrow(/"4{60}\.\.\."$/)
  })

  test('is aligned to the right if the descriptor of the format says so', () => {
    const line = new LineWriter(layouts.MDP).key('CODE', 'CB', 'right').key('CATEGORIE', 'CB', 'right').line()
    expect([columns(line, 7, 9), columns(line, 45, 47)]).toEqual([' CB', ' CB'])
  })
})

test('writing a field as another type throws a programming error', () => {
  const writer = new LineWriter(layouts.ENTRY)
  expect(() => writer.text('MONTANT1', '1')).toThrow('ENTRY.MONTANT1 is of kind n, not a')
  expect(() => writer.flag('LIBELLE', true)).toThrow('ENTRY.LIBELLE is of kind a, not b')
})
