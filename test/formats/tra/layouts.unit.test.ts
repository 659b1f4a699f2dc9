import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import columns from '../../../src/formats/tra/columns.json' with { type: 'json' }
import { fieldOf, layouts, type TraLayout } from '../../../src/formats/tra/layouts.ts'

const all: [string, TraLayout][] = Object.entries(layouts)

describe.each(all)('%s', (_name, layout) => {
  test('fields follow each other without gaps, under distinct names', () => {
    let next = 1
    for (const { at, length } of layout.fields) {
      expect(at).toBe(next)
      next = at + length
    }
    expect(layout.length).toBe(next - 1)
    expect(new Set(layout.fields.map(({ name }) => name)).size).toBe(layout.fields.length)
  })
})

test('the mandatory columns end where the last mandatory field ends', () => {
  expect(layouts.HEADER.mandatoryEnd).toBe(149)
  expect(layouts.PS1.mandatoryEnd).toBe(6)
  expect(layouts.CAE.mandatoryEnd).toBe(545)
  expect(layouts.ENTRY.mandatoryEnd).toBe(1316)
  expect(layouts.ANALYTIC.mandatoryEnd).toBe(1231)
})

test('a field is found by its name, and an unknown name throws a programming error', () => {
  expect(fieldOf(layouts.ENTRY, 'MONTANT1')).toMatchObject({
    at: 131,
    length: 20,
    kind: 'n',
    mandatory: true,
  })
  expect(() => fieldOf(layouts.ENTRY, 'MONTANT4')).toThrow('ENTRY has no field MONTANT4')
})

test.each(Object.entries(columns))('the line of %s is as long as the descriptor says', (_, record) => {
  const [, at, length] = record.fields.at(-1) as [string, number, number]
  expect(at + length - 1).toBe(record.length)
})

/** Page, mark and length of each record, and columns 1 to 5 of its fields. */
const described = Object.entries(columns).map(([record, { page, mandatory, length, fields }]) => {
  return [record, page, mandatory, length, fields.map((field) => field.slice(0, 5))]
})

// The tests below compare the records with the descriptor, field by field, if it is on this machine.
test('the records have not changed since they were compared with the descriptor', () => {
  expect(createHash('sha256').update(JSON.stringify(described)).digest('hex')).toBe(
    '743df96735356dfa78066ddc496d9d9fc9194f23e9b366c7b98bdb0bccfd4e98',
  )
})

interface Described {
  page: number
  mandatory: boolean
  length: number
  fields: { name: string; position: number; length: number; type: string; mandatory: boolean }[]
}

const descriptor = join(import.meta.dirname, '../../../../shared/spec/tra-layout.json')

describe.skipIf(!existsSync(descriptor))('the descriptor', () => {
  const { records }: { records: Record<string, Described> } = existsSync(descriptor)
    ? JSON.parse(readFileSync(descriptor, 'utf8'))
    : { records: {} }

  test.each(Object.entries(columns))(
    'has the columns of %s',
    (record, { page, mandatory, length, fields }) => {
      const named = (name: string, at: number) =>
        fields.some(([other]) => other === `${name}_${at}`) ? `${name}_${at}` : name
      expect({ page, mandatory, length, fields: fields.map((field) => field.slice(0, 5)) }).toEqual({
        page: records[record]!.page,
        mandatory: records[record]!.mandatory,
        length: records[record]!.length,
        fields: records[record]!.fields.map((field) => [
          named(field.name, field.position),
          field.position,
          field.length,
          field.type,
          field.mandatory ? 'M' : '-',
        ]),
      })
    },
  )

  test('has no other record except the optional PS4 and GED, which are never written', () => {
    expect(Object.keys(records).filter((record) => !(record in columns))).toEqual(['PS4', 'GED'])
  })
})
