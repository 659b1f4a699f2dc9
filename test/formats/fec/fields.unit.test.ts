/** Amounts of a FEC: how they are read, and which are refused. */
import { expect, test } from 'vitest'
import { parseAmount, plainAmount, standardAmount } from '../../../src/formats/fec/fields.ts'

test.each([
  ['-100,00', '-100,00'],
  ['+0050.5', '50,5'],
  [',250', '0,250'],
  ['7,', '7'],
  ['000', '0'],
])('the amount %s is written as %s in the standard form', (text, standard) => {
  expect(standardAmount(text)).toBe(standard)
})

test.each([
  ['0', 0n],
  ['0,01', 1n],
  ['-0.01', -1n],
  ['+12,5', 1250n],
  [',5', 50n],
  ['0000012,30', 1230n],
  ['90071992547409,93', 9_007_199_254_740_993n],
  ['999999999999999,99', 99_999_999_999_999_999n],
  ['1,2300', 123n],
  [`${'0'.repeat(60)},01`, 1n],
  ['', undefined],
  ['-', undefined],
  [',', undefined],
  ['1,234', undefined],
  ['1.234,56', undefined],
  ['1e3', undefined],
  ['0x10', undefined],
  ['1 500,00', 150_000n],
  ['1\u00a0500,00', 150_000n],
  ['1\u202f500.5', 150_050n],
  ['-12 345 678', -1_234_567_800n],
  ['+999 999 999 999 999,99', 99_999_999_999_999_999n],
  ['1 500,00-', -150_000n],
  ['1,00-', -100n],
  ['012-', -1200n],
  ['1 5 00,00', undefined],
  ['15 00,00', undefined],
  ['1 50,00', undefined],
  ['1 5000,00', undefined],
  ['1500 000,00', undefined],
  ['0 500,00', undefined],
  ['1  500,00', undefined],
  ['1 500\u00a0000,00', undefined],
  ['1 500,00 -', undefined],
  ['1 500,0 0', undefined],
  ['1,000 000', undefined],
  ['- 1,00', undefined],
  ['1\t500,00', undefined],
  ['--1', undefined],
  ['1--', undefined],
  ['-1,00-', undefined],
  ['+1,00-', undefined],
  ['1,00+', undefined],
  ['1-,00', undefined],
  [' -', undefined],
])('the amount "%s" is read as %s hundredths (undefined: refused)', (text, expected) => {
  expect(parseAmount(plainAmount(text))).toBe(expected)
})
