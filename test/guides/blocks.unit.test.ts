/** The reader of the guides: the steps that it finds, and the code blocks that it refuses. */
import { expect, test } from 'vitest'
import { isOutput, stepsOf } from '../support/guides/blocks.ts'

const fence = '```'

test('a page is read as files, commands, events and outputs, in the order of the page', () => {
  const page = `# Title
<!-- file: a.mjs -->
${fence}js
console.log(1)
${fence}
Some words.
<!-- meanwhile: it rains -->
${fence}sh
node a.mjs
${fence}

<!-- needs: python -->
<!-- output -->
${fence}text
1
${fence}
${fence}http
GET / HTTP/1.1
${fence}
`
  expect(stepsOf(page)).toEqual([
    { kind: 'file', name: 'a.mjs', text: 'console.log(1)\n', line: 3 },
    { kind: 'meanwhile', event: 'it rains', line: 7 },
    { kind: 'run', text: 'node a.mjs', line: 8 },
    { kind: 'output', text: '1', line: 14, needs: 'python' },
  ])
})

test('a code block that no test would run is refused', () => {
  for (const language of ['js', 'py', 'json', 'text', 'bash', ''])
    expect(() => stepsOf(`a\n${fence}${language}\nx\n${fence}\n`)).toThrow(`"${language}" in line 2`)
  expect(() => stepsOf(`${fence}sh\nx\n`)).toThrow('line 1 does not end')
})

test('an expected output matches exactly, except for parts left out with three dots', () => {
  expect(isOutput('{"id":31,"name":"x"}\n', '{"id":...,"name":"x"}')).toBe(true)
  expect(isOutput('first\nsecond\nlast\n', '...\nlast')).toBe(true)
  expect(isOutput('last', '...\nlast')).toBe(true)
  expect(isOutput('the last', '...\nlast')).toBe(false)
  expect(isOutput('padded  \n', 'padded')).toBe(true)
  expect(isOutput('{"id":31,"name":"y"}', '{"id":...,"name":"x"}')).toBe(false)
  expect(isOutput('1\n2', '1')).toBe(false)
  expect(isOutput('a+b', 'a.b')).toBe(false)
})
