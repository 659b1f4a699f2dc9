import { parseArgs } from 'node:util'

/** The options of a command of the bench. */
export interface Options<Name extends string> {
  text(name: Name): string | undefined
  /** @throws {Error} if it is not a whole number from the least to the most, both included */
  wholeNumber(name: Name, fallback: number, least: number, most: number): number
  /**
   * The one with this name; if there is none, those whose names contain the text; all without the option.
   * @throws {Error} if there is none, with all names
   */
  chosen<Named extends { name: string }>(name: Name, among: Named[]): Named[]
}

/**
 * @param usage `npm run bench -- [--rounds 5]`: shown with an error
 * @throws {Error} if the command line has anything else
 */
export function readOptions<Name extends string>(usage: string, names: readonly Name[]): Options<Name> {
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' as const }]))
  const values = parse(options, usage)
  return {
    text: (name) => values[name],
    wholeNumber: (name, fallback, least, most) => {
      const text = values[name]
      const number = text === undefined ? fallback : /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
      if (number >= least && number <= most) return number
      throw new Error(`--${name} takes a whole number from ${least} to ${most}\n${usage}`)
    },
    chosen: (option, among) => {
      const text = values[option]
      if (text === undefined) return among
      const exact = among.filter(({ name }) => name === text)
      const chosen = exact.length > 0 ? exact : among.filter(({ name }) => name.includes(text))
      if (chosen.length > 0) return chosen
      const names = among.map(({ name }) => `\n  ${name}`)
      throw new Error(`--${option} ${text} is none of:${names.join('')}\n${usage}`)
    },
  }
}

function parse(
  options: Record<string, { type: 'string' }>,
  usage: string,
): Record<string, string | undefined> {
  try {
    return parseArgs({ args: process.argv.slice(2), options }).values
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${usage}`, { cause: error })
  }
}
