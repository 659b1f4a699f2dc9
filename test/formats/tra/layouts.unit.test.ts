import { describe, expect, test } from 'vitest'
import { fieldOf, layouts, type TraLayout } from '../../../src/formats/tra/layouts/layouts.ts'
import { readFixture } from '../../support/fixtures/fixture-files.ts'

interface Described {
  identifier: string | null
  page: number
  mandatory: boolean
  length: number
  fields: [name: string, at: number, length: number, kind: string, mandatory: 'M' | '-'][]
}

const descriptor: Record<string, Described> = JSON.parse(readFixture('tra-columns.json').toString('utf8'))
const all: [string, TraLayout][] = Object.entries(layouts)

describe.each(all)('%s', (_name, layout) => {
  test('its fields follow each other without gaps, under distinct names', () => {
    let next = 1
    for (const { at, length } of layout.fields) {
      expect(at).toBe(next)
      next = at + length
    }
    expect(layout.length).toBe(next - 1)
    expect(new Set(layout.fields.map(({ name }) => name)).size).toBe(layout.fields.length)
  })
})

test('mandatory columns end where the last mandatory field ends', () => {
  expect(layouts.HEADER.mandatoryEnd).toBe(149)
  expect(layouts.PS1.mandatoryEnd).toBe(6)
  expect(layouts.CAE.mandatoryEnd).toBe(545)
  expect(layouts.ENTRY.mandatoryEnd).toBe(1316)
  expect(layouts.ANALYTIC.mandatoryEnd).toBe(1231)
})

test('a field is found by its name, and an unknown name is a programming error', () => {
  expect(fieldOf(layouts.ENTRY, 'MONTANT1')).toMatchObject({
    at: 131,
    length: 20,
    kind: 'n',
    mandatory: true,
  })
  expect(() => fieldOf(layouts.ENTRY, 'MONTANT4')).toThrow('ENTRY has no field MONTANT4')
})

describe('the descriptor', () => {
  const described = (record: string): Described => {
    if (record !== 'ENTRY' && record !== 'ANALYTIC') return descriptor[record]!
    const line = descriptor['ENTRY']!
    const extended = descriptor[`${record}_EXT`]!
    return { ...line, length: extended.length, fields: [...line.fields, ...extended.fields] }
  }

  test.each(all)('%s has its fields, columns, lengths, kinds and mandatory marks', (record, layout) => {
    const { fields, ...whole } = described(record)
    expect(layout).toMatchObject(whole)
    expect(
      layout.fields.map(({ name, at, length, kind, mandatory }) => [
        name,
        at,
        length,
        kind,
        mandatory ? 'M' : '-',
      ]),
    ).toEqual(fields)
  })

  test('every record has a layout but the optional PS4 and GED, which are never written', () => {
    const extensions = ['ENTRY_EXT', 'ANALYTIC_EXT']
    const known = new Set([...Object.keys(layouts), ...extensions])
    expect(Object.keys(descriptor).filter((record) => !known.has(record))).toEqual(['PS4', 'GED'])
  })
})
