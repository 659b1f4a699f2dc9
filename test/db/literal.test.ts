import { expect, test } from 'vitest'
import { idLiteral, textLiteral } from '../../src/db/literal.ts'
import { forTests } from '../support/for-tests.ts'
import { connect, createTestDatabase } from '../support/servers/database.ts'

const database = forTests(() => createTestDatabase({ template: 'template1' }))
const client = forTests(() => connect(database.ownerUrl))

const hostile = [
  '',
  ' ',
  "'",
  "''",
  "' or true --",
  "'; drop table movements; --",
  '\\',
  "\\'",
  "\\\\'",
  "'\\",
  "\\'; select 1 --",
  'E',
  "E'",
  '$$',
  "$1'",
  '/*',
  '*/',
  '--',
  '"',
  '%',
  '\\N',
  '\\x27',
  '\\047',
  "\\u0027'",
  '\u2019',
  '\u02bc',
  '\uff07',
  'é😀中\u2028',
  "\u00bf'",
  'a\nb\tc\r',
  "'".repeat(10_001),
  '\\'.repeat(10_001),
  Array.from({ length: 255 }, (_, i) => String.fromCharCode(i + 1)).join(''),
]

test.each(['on', 'off'])(
  'the literal of a text has exactly that text, with standard_conforming_strings %s',
  async (setting) => {
    await client.query(`set standard_conforming_strings = ${setting}; set escape_string_warning = off`)
    for (const text of hostile) {
      const { rows } = await client.query(`select ${textLiteral(text)} as value, 'intact' as after`)
      expect(rows).toEqual([{ value: text, after: 'intact' }])
    }
    // The literals are used as in COPY, which takes no parameters.
    const { rows } = await client.query(`select ${hostile.map(textLiteral).join(` || '|' || `)} as value`)
    expect(rows[0].value).toBe(hostile.join('|'))
    await client.query('reset all')
  },
)

test('a text that contains NUL is refused', () => {
  expect(() => textLiteral('a\0b')).toThrow('NUL')
})

test('an id may contain only digits', async () => {
  for (const id of ['0', '1', '007', '9007199254740991', '9999999999999999']) {
    expect(idLiteral(id)).toBe(id)
    expect((await client.query(`select ${idLiteral(id)}::bigint::text as id`)).rows[0].id).toBe(
      String(BigInt(id)),
    )
  }
  for (const id of [
    '',
    ' 1',
    '1 ',
    '1\n',
    '-1',
    '+1',
    '1.0',
    '1e3',
    '0x1',
    "1'",
    '1;',
    '١',
    '1'.repeat(17),
    '1,2',
  ])
    expect(() => idLiteral(id), JSON.stringify(id)).toThrow('digits')
})
