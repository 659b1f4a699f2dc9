import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fieldOf, layouts, type TraLayout } from '../../../src/formats/tra/layouts/layouts.ts'

const descriptor = join(resolve(import.meta.dirname, '../../../../shared/spec'), 'tra-layout.json')

interface Described {
  page: number
  mandatory: boolean
  length: number
  identifier: string | null
  fields: { name: string; key?: string; type: string; length: number; position: number; mandatory: boolean }[]
}

const all: [string, TraLayout][] = Object.entries(layouts)

describe.each(all)('%s', (_name, layout) => {
  test('its fields follow each other without a gap, each under a name of its own', () => {
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

test('a field is found by its name, and one that is not there is our mistake', () => {
  expect(fieldOf(layouts.ENTRY, 'MONTANT1')).toMatchObject({
    at: 131,
    length: 20,
    kind: 'n',
    mandatory: true,
  })
  expect(() => fieldOf(layouts.ENTRY, 'MONTANT4')).toThrow('ENTRY has no field MONTANT4')
})

describe.skipIf(!existsSync(descriptor))('the descriptor', () => {
  const records: Record<string, Described> = existsSync(descriptor)
    ? JSON.parse(readFileSync(descriptor, 'utf8')).records
    : {}
  const described = (record: string): Described => {
    if (record !== 'ENTRY' && record !== 'ANALYTIC') return records[record]!
    const line = records['ENTRY']!
    const extended = records[`${record}_EXT`]!
    return { ...line, length: extended.length, fields: [...line.fields, ...extended.fields] }
  }

  test.each(all)('%s has its fields, columns, lengths, kinds and mandatory marks', (record, layout) => {
    const { fields, page, length, mandatory, identifier } = described(record)
    expect(layout).toMatchObject({ page, length, mandatory, identifier })
    expect(
      layout.fields.map(({ name, at, length, kind, mandatory }) => [name, at, length, kind, mandatory]),
    ).toEqual(fields.map((f) => [f.key ?? f.name, f.position, f.length, f.type, f.mandatory]))
  })

  test('every record is here but the optional PS4 and GED, which are never written', () => {
    const extensions = ['ENTRY_EXT', 'ANALYTIC_EXT']
    const known = new Set([...Object.keys(layouts), ...extensions])
    expect(Object.keys(records).filter((record) => !known.has(record))).toEqual(['PS4', 'GED'])
  })
})
