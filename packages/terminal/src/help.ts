/** The texts of --help, which are also the pages of the docs. */
import {
  type Argument,
  type Command,
  helpOption,
  type Option,
  type Options,
  type Program,
} from './command.ts'

const width = 80

/** All commands, a line each. @param group its first words; all groups without it */
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

/** Names in one column, and their texts beside it. */
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
