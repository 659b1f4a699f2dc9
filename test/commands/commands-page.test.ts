/** The page of commands is written from their declarations, and the operators' page names each command. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commandsPage } from '../../docs/commands-page.ts'
import { partnerProgram } from '../../packages/partner/src/cli/run.ts'
import { sampleCommands } from '../../packages/sample/src/sample-commands.ts'
import { staffProgram } from '../../src/commands/run-cli.ts'

const root = join(import.meta.dirname, '../..')
const read = (page: string) => readFileSync(join(root, page), 'utf8')
const staffCommands = staffProgram(sampleCommands).commands

test('the commands page matches the declarations of the commands (npm run docs -- commands)', () => {
  expect(read('docs/commands.md')).toBe(commandsPage())
})

test('every argument and option has a help text, and no command gives both the same name', () => {
  for (const { name, arguments: places = {}, options = {} } of [
    ...partnerProgram.commands,
    ...staffCommands,
  ]) {
    const taken = [...Object.entries(places), ...Object.entries(options)]
    const silent = taken.filter(([, { help }]) => help.trim() === '').map(([word]) => `${name}: ${word}`)
    expect(silent).toEqual([])
    expect(new Set(taken.map(([word]) => word)).size).toBe(taken.length)
  }
})

/** `['token', 'issue']`, or `['migrate']` */
const commands = staffCommands.map(({ name }) => name.split(' '))

test.each(commands.map((words) => [words.join(' '), words] as const))(
  'the operators page shows the command %s',
  (_name, words) => {
    // Commands of a group may share a line: `also: webhook disable, enable, delete <id>`.
    const page = read('docs/operators.md')
    const blocks = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text]) => text!)
    const spellings = [...blocks.join('').split('\n'), ...page.match(/`[^`\n]+`/g)!]
    const isIn = (line: string) =>
      words.every((word) => new RegExp(`(?<![\\w-])${word}(?![\\w-])`).test(line))
    expect(spellings.filter((line) => isIn(line))).not.toEqual([])
  },
)

test('every command that a page shows exists', () => {
  const pages = ['README.md', 'fixtures/README.md', 'docs/spec/imports.md']
  const shown = [...pages, ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`)]
    .filter((page) => page.endsWith('.md'))
    .flatMap((page) => [...read(page).matchAll(/npm run cli -- (\w[\w-]*)(?: (\w[\w-]*))?/g)])
  expect(shown.length).toBeGreaterThan(15)
  const known = ['help', ...commands.map((words) => words.join(' '))]
  const isKnown = (one: string, two = '') =>
    known.includes(one) || known.some((words) => `${words} `.startsWith(`${one} ${two} `))
  expect(shown.filter(([, one, two]) => !isKnown(one!, two)).map(([text]) => text)).toEqual([])
})
