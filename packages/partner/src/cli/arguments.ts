/** Reads the words of a command line: which command, and its options. */
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { UsageError } from '../../../terminal/src/command-errors.ts'
import { nearest } from '../../../terminal/src/nearest.ts'
import type { Command, Values } from './command.ts'

/** Options that every command takes. */
export const commonOptions = {
  help: { type: 'boolean', short: 'h' },
  json: { type: 'boolean' },
  society: { type: 'string' },
} as const

/** @returns the command that the first word names, or the first two, and the words after it */
export function findCommand(words: string[], commands: Command[]): { command: Command; rest: string[] } {
  for (const length of [2, 1]) {
    const name = words.slice(0, length).join(' ')
    const command = words.length >= length && commands.find((candidate) => candidate.name === name)
    if (command) return { command, rest: words.slice(length) }
  }
  const names = commands.map(({ name }) => name)
  const group = names.filter((name) => name.startsWith(`${words[0]} `))
  if (group.length > 0)
    throw new UsageError(`Which of these is meant: ${group.map((name) => `grandlivre ${name}`).join(', ')}?`)
  const meant = nearest(words[0]!, names) ?? nearest(words.slice(0, 2).join(' '), names)
  throw new UsageError(
    `There is no command "${words[0]}"; ` +
      (meant === undefined ? 'grandlivre --help lists all' : `is "${meant}" meant?`),
  )
}

/** @throws {UsageError} that names the option or word */
export function parseWords(command: Command, words: string[]): { values: Values; positionals: string[] } {
  const options: Command['options'] = { ...commonOptions, ...command.options }
  const { values, positionals, tokens } = parse({ args: words, options, allowPositionals: true })
  const seen = new Set<string>()
  for (const token of tokens) {
    if (token.kind !== 'option' || options[token.name]?.multiple) continue
    if (seen.has(token.name)) throw new UsageError(`${token.rawName} is given twice, and takes one value`)
    seen.add(token.name)
    if (token.value === '') throw new UsageError(`${token.rawName} has no value`)
  }
  if (positionals.length > (command.positionalsMax ?? 0))
    throw new UsageError(`"${positionals[command.positionalsMax ?? 0]}" is one word too many`)
  return { values: values as Values, positionals }
}

function parse(config: ParseArgsConfig & { options: NonNullable<ParseArgsConfig['options']> }) {
  try {
    return parseArgs({ ...config, strict: true, tokens: true })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (!code?.startsWith('ERR_PARSE_ARGS_')) throw error
    if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') throw new UsageError(message)
    const [, option = ''] = /'([^']+)'/.exec(message) ?? []
    const meant = nearest(
      option,
      Object.keys(config.options).map((name) => `--${name}`),
    )
    throw new UsageError(`There is no option ${option}${meant === undefined ? '' : `; is ${meant} meant?`}`)
  }
}
