/** Declares commands: their arguments and options, and their help, from which docs/commands.md is made. */

/** A kind of value. An option or argument without a kind takes any text. */
export interface Kind<Value> {
  /** Follows the word "takes" in messages: `a number from 1 to 999999`. */
  takes: string
  /** @returns the value; undefined if the text is not of this kind */
  read(text: string): Value | undefined
}

/** @param what names the kind of number, such as `a number` */
export function numberKind(what: string, least: number, most: number): Kind<number> {
  return {
    takes: `${what} from ${least} to ${most}`,
    read: (text) =>
      /^\d{1,9}$/.test(text) && Number(text) >= least && Number(text) <= most ? Number(text) : undefined,
  }
}

/** A word that a command recognizes by its place. */
export interface Argument {
  help: string
  is?: Kind<unknown>
  choices?: readonly string[]
}

export interface Option extends Argument {
  /** The name of the value in help, such as `id`. An option without this name is a switch. */
  value?: string
  required?: true
  /** The value that is used if the option is not given, as a user would type it. */
  default?: string
  /** Whether several values are possible, each after its own `--name` or one after another. */
  several?: true
}

/** The option `--help` or `-h`, which every command has. */
export const helpOption: Option = { help: 'show this help' }

export type Arguments = Record<string, Argument>
export type Options = Record<string, Option>

type Read<Of> = Of extends { is: Kind<infer Value> }
  ? Value
  : Of extends { choices: readonly (infer Word)[] }
    ? Word
    : string

type OptionValue<Of> = Of extends { value: string }
  ? Of extends { several: true }
    ? Read<Of>[]
    : Read<Of>
  : true

type Sure<O> = {
  [Name in keyof O]: O[Name] extends { required: true } | { default: string } ? Name : never
}[keyof O]

/** The values that were given, by the names of arguments and options. */
export type Given<A, O> = { [Name in keyof A]: Read<A[Name]> } & {
  [Name in Sure<O>]: OptionValue<O[Name]>
} & { [Name in Exclude<keyof O, Sure<O>>]?: OptionValue<O[Name]> }

export interface Declaration<A, O> {
  /** One word, or several, such as `webhook doctor`. */
  name: string
  /** One line for the list of commands. */
  summary: string
  /** More about the command, in lines of at most 80 characters. */
  about?: string
  arguments?: A
  options?: O
  /** Examples: whole command lines, and their output if that helps. */
  examples?: readonly string[]
}

/** A command with any arguments and options. */
export interface Command<Context> extends Declaration<Arguments, Options> {
  run(context: Context, given: Record<string, unknown>): Promise<void>
}

/** Declares a command. Its `run` gets values of the types that its arguments and options declare. */
export function command<
  Context,
  const A extends Arguments = Record<never, never>,
  const O extends Options = Record<never, never>,
>(
  declaration: Declaration<A, O> & { run(context: Context, given: Given<A, O>): Promise<void> },
): Command<Context> {
  return declaration as unknown as Command<Context>
}

/** All commands of a command line. */
export interface Program<Context> {
  /** The word that calls it, such as `grandlivre`. */
  call: string
  about: string
  /** Describes groups of commands, by the first words that the names of a group share. */
  groups: Record<string, string>
  /** The commands, in the order in which help lists them. */
  commands: readonly Command<Context>[]
  /** Options that every command has, in addition to `--help`. */
  options: Options
  /** The exit codes that help lists, with their meanings. */
  exitCodes: readonly (readonly [code: string, means: string])[]
}

/** Longest line of help, in characters. */
const width = 80

/** Lists all commands, one a line. @param group the first words of the commands to list; if absent, all commands */
export function overview<Context>(program: Program<Context>, group?: string): string[] {
  const commands = program.commands.filter(({ name }) => group === undefined || name.startsWith(`${group} `))
  return [
    `Usage: ${program.call} ${group === undefined ? '' : `${group} `}<command> [options]`,
    '',
    (group && program.groups[group]) ?? program.about,
    '',
    'Commands:',
    ...aligned(commands.map(({ name, summary }) => [name, summary])),
    '',
    `${program.call} help <command> shows the options of a command.`,
    ...section('Exit codes', aligned(program.exitCodes)),
  ]
}

export function helpOf<Context>(
  { call, options: common }: Pick<Program<Context>, 'call' | 'options'>,
  { name, summary, about, options = {}, examples, ...command }: Command<Context>,
): string[] {
  const places = Object.entries(command.arguments ?? {})
  const required = Object.entries(options).filter(([, option]) => option.required)
  const words = [
    ...[call, name].filter(Boolean),
    ...places.map(([place]) => `<${place}>`),
    ...required.map(([option, { value }]) => `--${option} <${value}>`),
    ...(required.length < Object.keys(options).length ? ['[options]'] : []),
  ]
  const others = Object.entries({ ...common, help: helpOption }).filter(([other]) => !(other in options))
  return [
    `Usage: ${words.join(' ')}`,
    '',
    ...(about === undefined
      ? wrapped(`${summary[0]!.toUpperCase()}${summary.slice(1)}.`, 0)
      : about.split('\n')),
    ...section('Arguments', aligned(places.map(([place, argument]) => [`<${place}>`, helpText(argument)]))),
    ...section('Options', optionLines(options)),
    ...section('Every command also takes', optionLines(Object.fromEntries(others))),
    ...section(
      'Examples',
      (examples ?? []).map((example) => `  ${example}`),
    ),
  ]
}

function section(heading: string, lines: string[]): string[] {
  return lines.length === 0 ? [] : ['', `${heading}:`, ...lines]
}

function optionLines(options: Options): string[] {
  return aligned(
    Object.entries(options).map(([name, option]) => [
      `--${name}${option.value === undefined ? '' : ` <${option.value}>`}${option.several ? ' ...' : ''}`,
      helpText(option),
    ]),
  )
}

function helpText({ help, choices, ...option }: Argument & Partial<Option>): string {
  const notes = [
    ...(choices ? [choices.join(', ')] : []),
    ...(option.required ? ['required'] : []),
    ...(option.default === undefined ? [] : [`default: ${option.default}`]),
  ]
  return notes.length === 0 ? help : `${help} (${notes.join('; ')})`
}

/** Writes two columns: names, and their texts. */
function aligned(rows: readonly (readonly [name: string, text: string])[]): string[] {
  const indent = Math.max(...rows.map(([name]) => name.length)) + 4
  return rows.flatMap(([name, text]) => {
    const [first = '', ...more] = wrapped(text, indent)
    return [`  ${name}`.padEnd(indent) + first.trimStart(), ...more]
  })
}

function wrapped(text: string, indent: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && indent + line.length + 1 + word.length > width) {
      lines.push(line)
      line = ''
    }
    line += line === '' ? word : ` ${word}`
  }
  return [...lines, line].map((each) => ' '.repeat(indent) + each)
}
