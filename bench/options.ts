/** The options of the commands of the bench, with `--help` and errors that name what is wrong. */
import { parseArgs } from 'node:util'

/** An option with a value, or a flag. */
export interface Option<Value> {
  /** `<number>`; undefined for a flag. */
  takes: string | undefined
  means: string
  /** What holds without the option, in words. */
  otherwise: string
  /** @throws {Error} that goes on with the name of the option */
  read(text: string | undefined): Value
}

type Options = Record<string, Option<unknown>>
type Values<Declared extends Options> = { [Name in keyof Declared]: ReturnType<Declared[Name]['read']> }

/** @param range the least and the most, both included */
export function wholeNumber<Otherwise extends number | undefined>(
  means: string,
  otherwise: Otherwise,
  [least, most]: [number, number],
): Option<number | Otherwise> {
  return {
    takes: '<number>',
    means,
    otherwise: `default ${otherwise ?? 'none'}`,
    read: (text) => {
      if (text === undefined) return otherwise
      const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
      if (number >= least && number <= most) return number
      throw new Error(`takes a whole number from ${least} to ${most}, not ${text}`)
    },
  }
}

export const flag = (means: string): Option<boolean> => ({
  takes: undefined,
  means,
  otherwise: 'default no',
  read: (text) => text !== undefined,
})

export const against: Option<string | undefined> = {
  takes: '<folder>',
  means: 'another checkout of the project, which takes turns with this one',
  otherwise: 'default none',
  read: (text) => text,
}

/** Which of those that are measured. `all` is whether the option is absent. */
export interface Only {
  all: boolean
  /**
   * The one with this name; if there is none, those whose names contain the text; all without the option.
   * @throws {Error} if there is none, with all names
   */
  of<Named extends { name: string }>(among: Named[]): Named[]
}

export const only: Option<Only> = {
  takes: '<name>',
  means: 'measure only the rows with this name, or whose names contain it',
  otherwise: 'default all',
  read: (text) => ({
    all: text === undefined,
    of: (among) => {
      if (text === undefined) return among
      const exact = among.filter(({ name }) => name === text)
      const chosen = exact.length > 0 ? exact : among.filter(({ name }) => name.includes(text))
      if (chosen.length > 0) return chosen
      throw new Error(`--only ${text} is none of:${among.map(({ name }) => `\n  ${name}`).join('')}`)
    },
  }),
}

/**
 * Reads the command line. With `--help` it prints the options and ends the process.
 * @param command `npm run bench -- small`
 * @throws {Error} if there is anything else, or a value that an option does not take
 */
export function readOptions<Declared extends Options>(command: string, declared: Declared): Values<Declared> {
  const args = process.argv.slice(2)
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(helpOf(command, declared))
    process.exit(0)
  }
  const texts = parse(args, declared, command)
  const values = Object.entries(declared).map(([name, { read }]) => {
    try {
      return [name, read(texts[name])]
    } catch (error) {
      throw new Error(`--${name} ${(error as Error).message}`, { cause: error })
    }
  })
  return Object.fromEntries(values)
}

function helpOf(command: string, declared: Options): string {
  const all = { ...declared, help: flag('print this') }
  const lines = Object.entries(all).map(([name, { takes, means, otherwise }]) => [
    `--${name}${takes === undefined ? '' : ` ${takes}`}`,
    takes === undefined ? means : `${means} (${otherwise})`,
  ])
  const width = Math.max(...lines.map(([option]) => option!.length))
  return [
    `Usage: ${command} [options]. bench/README.md says what it measures.`,
    '',
    ...lines.map(([option, means]) => `  ${option!.padEnd(width)}  ${means}`),
    '',
  ].join('\n')
}

function parse(args: string[], declared: Options, command: string): Record<string, string | undefined> {
  const options = Object.entries(declared).map(
    ([name, { takes }]) => [name, { type: takes === undefined ? 'boolean' : 'string' }] as const,
  )
  try {
    const { values } = parseArgs({ args, options: Object.fromEntries(options) })
    return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]))
  } catch (error) {
    const [what] = (error as Error).message.split('. ')
    throw new Error(`${what}. ${command} --help lists the options.`, { cause: error })
  }
}
