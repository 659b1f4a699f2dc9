/** What a command of the partner's command line works with. */
import type { Terminal } from '../../../terminal/src/terminal.ts'
import type { Grandlivre } from '../client/grandlivre.ts'
import type { RequestsOptions } from '../client/requests.ts'
import type { Access, FoundAccess } from './access.ts'

export interface Call {
  /**
   * The library, with the caller's access. Its `requests` reach the routes that it has no method for.
   * @param society the folder, where the command has found it out
   * @throws {Failure} if there is no access
   */
  ledger(society?: string): Grandlivre
  /** The library, with an access that a command has found itself. */
  library(access: Access & Pick<RequestsOptions, 'attemptsMax'>): Grandlivre
  /**
   * @param profile of several that the command takes
   * @throws {Failure} if there is no access
   */
  access(profile?: string): FoundAccess
  /** Prints an error that does not end the command, as one that does. */
  tell(error: unknown): void
  /** The profile of the login file that `--profile` names. */
  profile?: string
  /** The folder that `--society` names. */
  society?: string
  terminal: Terminal
  /** Aborts on Ctrl-C and SIGTERM. A command that then throws ends with exit code 130. */
  signal: AbortSignal
  /** Whether results are wanted as one JSON object a line. */
  json: boolean
  /** Environment of the process, for what is not access. */
  env: NodeJS.ProcessEnv
}
