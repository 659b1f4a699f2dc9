import { expect, test } from 'vitest'
import { readRow, readRows } from '../../../src/client/grandlivre.ts'
import { escapes } from '../../../src/client/ledgers/fields.ts'

test('a row has the texts that COPY wrote, and null for \\N', () => {
  expect(readRow('1\t\\N\t\t\\\\N\ta\\tb\\nc\\\\d')).toEqual(['1', null, '', '\\N', 'a\tb\nc\\d'])
  for (const [letter, character] of escapes) expect(readRow(`x\\${letter}y`)).toEqual([`x${character}y`])
  const rows = [...readRows(Buffer.from('1\té\u2028\n2\t\uFEFF\n'))]
  expect(rows).toEqual([
    ['1', 'é\u2028'],
    ['2', '\uFEFF'],
  ])
  expect([...readRows(Buffer.from('\uFEFF\n'))]).toEqual([['\uFEFF']])
})

test.each(['a\\', 'a\\x41', 'a\\101', 'a\\.', 'a\\\n'])(
  'refuses %j, which has an escape that COPY does not write',
  (field) => {
    expect(() => readRow(field)).toThrow(/which COPY does not write$/)
  },
)
