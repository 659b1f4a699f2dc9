/** Reads the words of a command line: finds the command, and the values that its arguments and options get. */
import { parseArgs } from 'node:util'
import {
  type Argument,
  type Command,
  helpOf,
  helpOption,
  type Option,
  type Options,
  overview,
  type Program,
} from './command.ts'
import { UsageError } from './command-errors.ts'
import { nearest } from './nearest.ts'

type Values = Record<string, unknown>

/**
 * @returns a command with its values; or a help, and whether the user asked for it
 * @throws {UsageError} that names the wrong word or option
 */
export function readCommandLine<Context>(
  program: Program<Context>,
  words: string[],
): { command: Command<Context>; given: Values } | { help: string[]; isAsked: boolean } {
  const [first, ...more] = words
  if (first === undefined) return { help: overview(program), isAsked: false }
  if (first === 'help' && more.length > 0) return readCommandLine(program, [...more, '--help'])
  if (['help', '--help', '-h'].includes(first)) return { help: overview(program), isAsked: true }
  const isHelp = ['--help', '-h'].includes(words.at(-1)!)
  const group = words.slice(0, -1).join(' ')
  const names = program.commands.map(({ name }) => name)
  if (isHelp && !names.includes(group) && names.some((name) => name.startsWith(`${group} `)))
    return { help: overview(program, group), isAsked: true }
  const { command, rest } = findCommand(program, words)
  const given = readWords(command, rest, program.options)
  return given === 'help' ? { help: helpOf(program, command), isAsked: true } : { command, given }
}

/** Suggests what the user may have meant, and, if the words name a command, where to read about it. */
export function usageHints<Context>(
  { call, commands }: Program<Context>,
  words: string[],
  { choices }: UsageError,
): string[] {
  const command = commandIn(commands, words)
  return [...choices, ...(command ? [`${call} help ${command.name} shows its options.`] : [])]
}

/** Finds the command that the first words name. The longest name wins: `profiles remove` over `profiles`. */
function commandIn<Context>(commands: readonly Command<Context>[], words: readonly string[]) {
  const named = commands.filter(({ name }) => `${words.join(' ')} `.startsWith(`${name} `))
  return named.sort((one, other) => other.name.length - one.name.length)[0]
}

/** @returns the command that the first words name, and the remaining words */
function findCommand<Context>(
  { call, commands }: Pick<Program<Context>, 'call' | 'commands'>,
  words: readonly string[],
): { command: Command<Context>; rest: string[] } {
  const command = commandIn(commands, words)
  if (command) return { command, rest: words.slice(command.name.split(' ').length) }
  const meant = meantBy(
    words,
    commands.map(({ name }) => name.split(' ')),
  )
  if (words[0]!.startsWith('-'))
    throw new UsageError(`Options follow the command: ${call} <command> ${words[0]}`)
  const [typed, start] = [words.slice(0, meant.length).join(' '), meant.join(' ')]
  if (typed !== start) throw new UsageError(`There is no command "${typed}"; is "${start}" meant?`)
  if (meant.length === 0) throw new UsageError(`There is no command "${words[0]}"; ${call} --help lists all`)
  const group = commands.filter(({ name }) => name.startsWith(`${start} `))
  throw new UsageError(`Which of these is meant: ${group.map(({ name }) => `${call} ${name}`).join(', ')}?`)
}

/**
 * Finds the command that the user most likely meant.
 * @returns its first words, up to the first given word that is similar to no known one
 */
function meantBy([word = '', ...more]: readonly string[], names: readonly string[][]): string[] {
  const firsts = names.flatMap(([first]) => first ?? [])
  const meant = firsts.includes(word) ? word : nearest(word, firsts)
  if (meant === undefined) return []
  const rests = names.filter(([first]) => first === meant).map((name) => name.slice(1))
  return [meant, ...meantBy(more, rests)]
}

/**
 * @param common options that every command has
 * @returns the values by the names of arguments and options, or `help`
 * @throws {UsageError} that names the wrong option or word
 */
export function readWords<Context>(
  command: Command<Context>,
  words: string[],
  common: Options,
): Values | 'help' {
  const options: Options = { help: helpOption, ...common, ...command.options }
  const { texts, places } = textsOf(options, words)
  if (texts.has('help')) return 'help'
  const given: Values = {}
  const named = Object.entries(command.arguments ?? {})
  for (const [at, [name, argument]] of named.entries()) {
    const text = places[at]
    if (text === undefined) throw new UsageError(`<${name}> is missing: ${argument.help}`)
    given[name] = readValue(`<${name}>`, argument, text)
  }
  if (places.length > named.length) throw new UsageError(`Unexpected word "${places[named.length]}"`)
  for (const [name, option] of Object.entries(options)) {
    const found = texts.get(name) ?? (option.default === undefined ? undefined : [option.default])
    if (found === undefined) {
      if (option.required) throw new UsageError(`--${name} <${option.value}> is missing: ${option.help}`)
    } else if (option.value === undefined) given[name] = true
    else {
      const values = found.map((text) => readValue(`--${name}`, option, text))
      given[name] = option.several ? values : values[0]
    }
  }
  return given
}

/** @returns the texts of the given options, and the words that belong to no option */
function textsOf(options: Options, words: string[]): { texts: Map<string, string[]>; places: string[] } {
  const texts = new Map<string, string[]>()
  const places: string[] = []
  let last: string[] = places
  for (const token of tokensOf(options, words)) {
    if (token.kind === 'positional') last.push(token.value)
    if (token.kind === 'option-terminator') last = places
    if (token.kind !== 'option') continue
    const { name, rawName } = token
    const option = Object.hasOwn(options, name) ? options[name]! : undefined
    if (option === undefined) throw unknownOption(rawName, options)
    const before = texts.get(name)
    if (before && !option.several)
      throw new UsageError(`${rawName} is given twice${option.value ? ', and takes one value' : ''}`)
    const values = [...(before ?? []), ...textOf(token, option)]
    texts.set(name, values)
    last = option.several ? values : places
  }
  return { texts, places }
}

function tokensOf(options: Options, words: string[]) {
  const known = Object.entries(options).map(([name, { value }]) => [
    name,
    {
      type: value === undefined ? ('boolean' as const) : ('string' as const),
      multiple: true as const,
      ...(name === 'help' && { short: 'h' }),
    },
  ])
  // Not strict, because in strict mode the error messages of parseArgs speak of its own settings.
  const config = { options: Object.fromEntries(known), allowPositionals: true, strict: false }
  return parseArgs({ args: words, ...config, tokens: true }).tokens
}

type OptionToken = Extract<ReturnType<typeof tokensOf>[number], { kind: 'option' }>

function textOf({ rawName, value, inlineValue }: OptionToken, option: Option): string[] {
  if (option.value === undefined) {
    if (value !== undefined) throw new UsageError(`${rawName} takes no value, not "${value}"`)
    return []
  }
  if (value === undefined) throw new UsageError(`${rawName} has no value`)
  if (!inlineValue && /^-./.test(value))
    throw new UsageError(`${rawName} has no value; if "${value}" is meant, write ${rawName}=${value}`)
  return [value]
}

function unknownOption(rawName: string, options: Options): UsageError {
  const meant = nearest(
    rawName,
    Object.keys(options).map((name) => `--${name}`),
  )
  return new UsageError(`There is no option ${rawName}${meant === undefined ? '' : `; is ${meant} meant?`}`)
}

function readValue(name: string, { is, choices }: Argument, text: string): unknown {
  if (text === '') throw new UsageError(`${name} has no value`)
  if (choices && !choices.includes(text))
    throw new UsageError(`${name} takes ${choices.join(', ')}, not "${text}"`)
  if (!is) return text
  const value = is.read(text)
  if (value === undefined) throw new UsageError(`${name} takes ${is.takes}, not "${text}"`)
  return value
}
