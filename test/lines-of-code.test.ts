import { expect, test } from 'vitest'
import { codeLines, roomOf } from './lines-of-code.ts'

test('comments and blank lines do not count as lines of code', () => {
  const text = [
    '/** A head. */',
    '/*',
    ' * select 1',
    ' */',
    '',
    '  // why',
    'const one = 1 // counted',
    '-- in SQL',
    '\tselect $1 /* counted */',
    '}',
    '',
  ]
  expect(codeLines(text.join('\n'))).toBe(3)
})

test.each([
  ['src/http/routes/key.ts', 'src/http'],
  ['src/start.ts', 'src'],
  ['packages/partner/src/client/http/retry.ts', 'packages/partner'],
  ['ops/tables.sql', 'ops'],
  ['vitest.config.ts', 'the top folder'],
])('the file %s belongs to the room %s', (path, room) => {
  expect(roomOf(path)).toBe(room)
})
