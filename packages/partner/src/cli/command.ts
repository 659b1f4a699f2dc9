/** What a command of the partner's command line is. */
import type { ParseArgsConfig } from 'node:util'
import type { Terminal } from '../../../terminal/src/terminal.ts'
import type { Grandlivre } from '../client/grandlivre.ts'
import type { FoundAccess } from './access.ts'

export interface Command {
  /** One word, or two: `webhook doctor`. */
  name: string
  /** One line for the list of the commands. */
  summary: string
  /** The whole text of --help. Options that every command takes are added to it. */
  usage: string
  /** Its own options. --help, --json and --society are there for every command. */
  options: NonNullable<ParseArgsConfig['options']>
  /** Most positional arguments that it takes. Default: none. */
  positionalsMax?: number
  run(call: Call): Promise<void>
}

/** Values of options by name, as `parseArgs` gives them. */
export type Values = Record<string, string | boolean | (string | boolean)[] | undefined>

export interface Call {
  values: Values
  positionals: string[]
  /**
   * The library, with the caller's access. Its `requests` reach the routes that it has no method for.
   * @param society the folder, where the command has found it out
   * @throws {Failure} if there is no access
   */
  ledger(society?: string): Grandlivre
  /** @throws {Failure} if there is no access */
  access(): FoundAccess
  terminal: Terminal
  /** Aborts on Ctrl-C and SIGTERM. A command that then throws ends with exit code 130. */
  signal: AbortSignal
  /** Whether results are wanted as one JSON object a line. */
  json: boolean
  /** Environment of the process, for what is not access. */
  env: NodeJS.ProcessEnv
}

/** @returns the text of an option, undefined where it is absent */
export function textOf(values: Values, name: string): string | undefined {
  const value = values[name]
  return typeof value === 'string' ? value : undefined
}
