import { expect, test } from 'vitest'
import { mergedOrder } from '../../../src/ledger/tra/master-data.ts'
import { streetParts } from '../../../src/ledger/tra/parameters.ts'

test.each([
  ['12 bis rue des Érables', 'des Érables', ['12', 'bis', 'rue']],
  ['12 rue des Érables', 'des Érables', ['12', null, 'rue']],
  ['avenue Foch', 'Foch', [null, null, 'avenue']],
  ['12 B Foch', 'Foch', ['12', 'B', null]],
  ['Foch', 'Foch', [null, null, null]],
  ['12 rue', '', ['12', null, 'rue']],
  ['12 avenue du Général de Gaulle, à', 'du Général de Gaulle, à   Lyon', ['12', null, 'avenue']],
  ['', '', [null, null, null]],
  ['12 rue de la République et des Arts', 'de la République et des Arts et Métiers', ['12', null, 'rue']],
])('%s is split at the name %s', (whole, name, [number, locatingIndex, streetType]) => {
  expect(streetParts(whole, name, 35)).toEqual({ number, locatingIndex, streetType })
})

test('a street that does not match its parts is not split', () => {
  expect(streetParts('1 rue Hugo', 'Foch', 35)).toBeUndefined()
})

test('a merged list keeps the order of both lists as far as they agree', () => {
  expect(
    mergedOrder([
      ['b', 'd'],
      ['a', 'b', 'c'],
      ['c', 'd', 'e'],
    ]),
  ).toEqual(['a', 'b', 'c', 'd', 'e'])
  expect(
    mergedOrder([
      ['a', 'b'],
      ['b', 'a', 'c'],
    ]).toSorted(),
  ).toEqual(['a', 'b', 'c'])
  expect(mergedOrder([])).toEqual([])
})
