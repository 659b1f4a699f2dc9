/** Reads words of command lines by declarations of commands. */
import { describe, expect, test } from 'vitest'
import { command, type Kind, type Program } from '../src/command.ts'
import { UsageError } from '../src/command-errors.ts'
import { nearest } from '../src/nearest.ts'
import { readCommandLine } from '../src/words.ts'

const number: Kind<number> = {
  takes: 'a digit',
  read: (text) => (/^\d$/.test(text) ? Number(text) : undefined),
}
const nothing = async () => {}
const program: Program<undefined> = {
  call: 'books',
  about: 'Keeps books.',
  groups: { webhook: 'Receivers.' },
  commands: [
    command({
      name: 'pull',
      summary: 'pull a year',
      options: {
        exercice: { value: 'id', help: 'of the year' },
        force: { help: 'replace the file' },
        root: { value: 'roots', several: true, is: number, help: 'of accounts' },
        format: { value: 'format', choices: ['csv', 'json'], default: 'csv', help: 'of the file' },
      },
      run: nothing,
    }),
    command({
      name: 'webhook list',
      summary: 'list receivers',
      options: { json: { help: 'print an array' } },
      run: nothing,
    }),
    command({ name: 'key box add', summary: 'add a box', run: nothing }),
    command({
      name: 'webhook doctor',
      summary: 'heal a receiver',
      arguments: { id: { is: number, help: 'of the receiver' } },
      options: { reason: { value: 'text', required: true, help: 'for others' } },
      run: nothing,
    }),
  ],
  options: { json: { help: 'print JSON' } },
  exitCodes: [['0', 'done']],
}

const read = (...words: string[]) => {
  const line = readCommandLine(program, words)
  return 'help' in line ? line.help.join('\n') : { name: line.command.name, ...line.given }
}

describe('the words', () => {
  test.each<[string[], object]>([
    [['pull'], { name: 'pull', format: 'csv' }],
    [['pull', '--exercice=2025', '--json'], { name: 'pull', exercice: '2025', json: true, format: 'csv' }],
    [['pull', '--force', '--format', 'json'], { name: 'pull', force: true, format: 'json' }],
    [['pull', '--root', '6', '--root', '7', '8'], { name: 'pull', root: [6, 7, 8], format: 'csv' }],
    [['pull', '--exercice=-h'], { name: 'pull', exercice: '-h', format: 'csv' }],
    [['webhook', 'list'], { name: 'webhook list' }],
    [['webhook', 'doctor', '7', '--reason', 'ill'], { name: 'webhook doctor', id: 7, reason: 'ill' }],
  ])('%j are read', (words, given) => {
    expect(read(...words)).toEqual(given)
  })

  test.each([
    [['pul'], 'There is no command "pul"; is "pull" meant?'],
    [['webhook', 'docter'], 'There is no command "webhook docter"; is "webhook doctor" meant?'],
    [['webhook'], 'Which of these is meant: books webhook list, books webhook doctor?'],
    [['webhook', 'delete', '5'], 'Which of these is meant: books webhook list, books webhook doctor?'],
    [['webhok', 'delete', '5'], 'There is no command "webhok"; is "webhook" meant?'],
    [['key', 'box', 'remove'], 'Which of these is meant: books key box add?'],
    [['webhok', 'list'], 'There is no command "webhok list"; is "webhook list" meant?'],
    [['frobnicate'], 'There is no command "frobnicate"; books --help lists all'],
    [['--json', 'pull'], 'Options follow the command: books <command> --json'],
    [['pull', '--exercise', '2025'], 'There is no option --exercise; is --exercice meant?'],
    [['pull', '--verbose'], 'There is no option --verbose'],
    [['pull', '-x'], 'There is no option -x'],
    [['pull', '--toString'], 'There is no option --toString'],
    [['pull', '--exercice', '1', '--exercice', '2'], '--exercice is given twice, and takes one value'],
    [['pull', '--force', '--force'], '--force is given twice'],
    [['pull', '--root', '6', '--', '7'], 'Unexpected word "7"'],
    [['pull', '--root', '6', ''], '--root has no value'],
    [['webhook', 'doctor', '', '--reason', 'ill'], '<id> has no value'],
    [['pull', '--exercice='], '--exercice has no value'],
    [['pull', '--exercice'], '--exercice has no value'],
    [
      ['pull', '--exercice', '--force'],
      '--exercice has no value; if "--force" is meant, write --exercice=--force',
    ],
    [['pull', '--force=no'], '--force takes no value, not "no"'],
    [['pull', '--root', '6', 'x'], '--root takes a digit, not "x"'],
    [['pull', '--format', 'xml'], '--format takes csv, json, not "xml"'],
    [['pull', '2025'], 'Unexpected word "2025"'],
    [['webhook', 'doctor', '7', '8', '--reason', 'ill'], 'Unexpected word "8"'],
    [['webhook', 'doctor', '--reason', 'ill'], '<id> is missing: of the receiver'],
    [['webhook', 'doctor', 'x', '--reason', 'ill'], '<id> takes a digit, not "x"'],
    [['webhook', 'doctor', '7'], '--reason <text> is missing: for others'],
  ])('%j are refused: %s', (words, message) => {
    expect(() => read(...words)).toThrow(new UsageError(message))
  })
})

test.each([[['pull', '--help']], [['pull', '--exercice', '1', '-h']], [['help', 'pull']]])(
  'the help %j shows every option and argument of a command',
  (words) => {
    expect(read(...words)).toBe(`Usage: books pull [options]

Pull a year.

Options:
  --exercice <id>     of the year
  --force             replace the file
  --root <roots> ...  of accounts
  --format <format>   of the file (csv, json; default: csv)

Every command also takes:
  --json  print JSON
  --help  show this help`)
  },
)

test('an option that a command redeclares is shown once, in place of the common option', () => {
  expect((read('webhook', 'list', '--help') as string).match(/^ +--json .*/gm)).toEqual([
    '  --json  print an array',
  ])
})

test('required options and arguments appear in the first line', () => {
  expect(read('webhook', 'doctor', '--help')).toMatch(/^Usage: books webhook doctor <id> --reason <text>\n/)
})

test.each([[['--help']], [['help']], [[]]])('the help %j lists the commands', (words) => {
  expect(read(...words)).toMatch(/^Usage: books <command>[\s\S]*\n {2}webhook doctor {2}heal a receiver\n/)
})

test('the help of a group lists its commands', () => {
  const help = read('webhook', '--help') as string
  expect(help).toContain('\n  webhook list ')
  expect(help).not.toContain('pull')
})

test.each([
  ['pul', 'pull'],
  ['plul', 'pull'],
  ['listne', 'listen'],
  ['whoam', 'whoami'],
  ['x', undefined],
  ['export', undefined],
])('for the mistyped %s the suggested command is %s', (word, expected) => {
  expect(nearest(word, ['pull', 'sync', 'listen', 'whoami', 'login', 'logout'])).toBe(expected)
})
