import { describe, expect, test } from 'vitest'
import { UsageError } from '../../../terminal/src/command-errors.ts'
import { nearest } from '../../../terminal/src/nearest.ts'
import { findCommand, parseWords } from '../../src/cli/arguments.ts'
import type { Command } from '../../src/cli/command.ts'

const command = (name: string, more: Partial<Command> = {}): Command => ({
  name,
  summary: '',
  usage: '',
  options: {},
  run: async () => {},
  ...more,
})

const pull = command('pull', {
  options: {
    exercice: { type: 'string' },
    force: { type: 'boolean' },
    root: { type: 'string', multiple: true },
  },
})
const commands = [pull, command('webhook list'), command('webhook doctor', { positionalsMax: 1 })]

describe('which command', () => {
  test('one word or two name a command, and the rest is its own', () => {
    expect(findCommand(['pull', '--force'], commands)).toEqual({ command: pull, rest: ['--force'] })
    const doctor = findCommand(['webhook', 'doctor', '7'], commands)
    expect([doctor.command.name, doctor.rest]).toEqual(['webhook doctor', ['7']])
  })

  test.each([
    [['pul'], 'There is no command "pul"; is "pull" meant?'],
    [['webhook', 'docter'], 'Which of these is meant: grandlivre webhook list, grandlivre webhook doctor?'],
    [['webhok', 'list'], 'There is no command "webhok"; is "webhook list" meant?'],
    [['frobnicate'], 'There is no command "frobnicate"; grandlivre --help lists all'],
  ])('%j: %s', (words, message) => {
    expect(() => findCommand(words, commands)).toThrow(new UsageError(message))
  })
})

describe('its options', () => {
  test('values, and options that every command takes', () => {
    const { values } = parseWords(pull, ['--exercice=2025', '--json', '--root', '60', '--root', '61'])
    expect(values).toEqual({ exercice: '2025', json: true, root: ['60', '61'] })
  })

  test.each([
    [['--exercise', '2025'], 'There is no option --exercise; is --exercice meant?'],
    [['--verbose'], 'There is no option --verbose'],
    [['--exercice', '1', '--exercice', '2'], '--exercice is given twice, and takes one value'],
    [['--exercice='], '--exercice has no value'],
    [['--exercice'], "Option '--exercice <value>' argument missing"],
    [['2025'], '"2025" is one word too many'],
  ])('%j: %s', (words, message) => {
    expect(() => parseWords(pull, words)).toThrow(new UsageError(message))
  })

  test('positional words, as many as the command takes', () => {
    const [, , doctor] = commands
    expect(parseWords(doctor!, ['7']).positionals).toEqual(['7'])
    expect(() => parseWords(doctor!, ['7', '8'])).toThrow('"8" is one word too many')
  })
})

test.each([
  ['pul', 'pull'],
  ['plul', 'pull'],
  ['listne', 'listen'],
  ['whoam', 'whoami'],
  ['x', undefined],
  ['export', undefined],
])('of the commands, %s is nearest to %s', (word, expected) => {
  expect(nearest(word, ['pull', 'sync', 'listen', 'whoami', 'login', 'logout'])).toBe(expected)
})
