/** What a command is, for its parsing, its help and its page of the docs. */

/** What a value may be, beyond any text. */
export interface Kind<Value> {
  /** After "takes": `a number from 1 to 999999`. */
  takes: string
  /** @returns undefined if the text is not such a value */
  read(text: string): Value | undefined
}

/** @param what such as `a number` */
export function numberKind(what: string, least: number, most: number): Kind<number> {
  return {
    takes: `${what} from ${least} to ${most}`,
    read: (text) =>
      /^\d{1,9}$/.test(text) && Number(text) >= least && Number(text) <= most ? Number(text) : undefined,
  }
}

/** A word that a command takes by its place. */
export interface Argument {
  help: string
  is?: Kind<unknown>
  choices?: readonly string[]
}

export interface Option extends Argument {
  /** How help names its value: `id`. An option without it is a switch. */
  value?: string
  required?: true
  /** The value without the option, as it would be typed. */
  default?: string
  /** Whether it takes several values, each after its own `--name` or one after another. */
  several?: true
}

/** Every command takes `--help` and `-h`. */
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

/** What was given, by the names of arguments and options. */
export type Given<A, O> = { [Name in keyof A]: Read<A[Name]> } & {
  [Name in Sure<O>]: OptionValue<O[Name]>
} & { [Name in Exclude<keyof O, Sure<O>>]?: OptionValue<O[Name]> }

export interface Declaration<A, O> {
  /** One word, or several: `webhook doctor`. */
  name: string
  /** One line for the list of the commands. */
  summary: string
  /** More about it, in lines of at most 80 characters. */
  about?: string
  arguments?: A
  options?: O
  /** Whole command lines, and what they print if that helps. */
  examples?: readonly string[]
}

/** A command whose values were read as it declares them. */
export interface Command<Context> extends Declaration<Arguments, Options> {
  run(context: Context, given: Record<string, unknown>): Promise<void>
}

/** Declares a command; `run` gets its values in the types that its arguments and options have. */
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
  /** How it is called: `grandlivre`. */
  call: string
  about: string
  /** What commands with the same first words are about. */
  groups: Record<string, string>
  /** In the order of the help. */
  commands: readonly Command<Context>[]
  /** Options that every command takes, beside `--help`. */
  options: Options
  /** Exit codes and what they mean, for the help. */
  exitCodes: readonly (readonly [code: string, means: string])[]
}
