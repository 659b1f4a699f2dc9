/** What a command of the partner's command line works with. */
import { secondsText } from '../../../terminal/src/amounts.ts'
import type { Given } from '../../../terminal/src/command.ts'
import type { Terminal } from '../../../terminal/src/terminal.ts'
import { Grandlivre } from '../client/grandlivre.ts'
import type { RequestsOptions, Wait } from '../client/requests.ts'
import { type Access, findAccess, inGivenWords, profileKind } from './access.ts'

/** Options of every command. */
export const commonOptions = {
  profile: { value: 'name', is: profileKind, help: 'the access that login --profile kept under this name' },
  society: { value: 'id', help: 'the folder, where the token is one of a firm' },
  json: { help: 'print results, and an error on standard error, as lines of JSON' },
  quiet: { help: 'print results and errors alone, and not what happens meanwhile' },
} as const

/** The process of a command, as far as the command line uses it. */
export interface CommandProcess {
  env: NodeJS.ProcessEnv
  terminal: Terminal
  /** Aborts on Ctrl-C and SIGTERM. A command that then throws ends with exit code 130. */
  signal: AbortSignal
}

export type CommandCall = ReturnType<typeof commandCall>

/** @param tell prints an error that does not end the command, as one that does */
export function commandCall(
  given: Record<string, unknown>,
  { env, terminal: all, signal }: CommandProcess,
  tell: (error: unknown) => void,
) {
  const { json, quiet, ...chosen } = given as Given<unknown, typeof commonOptions>
  // Commands that take several find their accesses themselves: here the first stands for all.
  const [profile] = [chosen.profile].flat()
  const [society] = [chosen.society].flat()
  const terminal = { ...all, ...(quiet ? { note: () => {}, progress: () => {} } : {}) }
  const onWait = ({ reason, ms }: Wait) => {
    terminal.progress(`Waiting ${secondsText(ms)}: ${reason}`)
    setTimeout(terminal.endProgress, ms).unref()
  }
  /** The library, with an access that a command has found itself. */
  const library = (access: Access & Pick<RequestsOptions, 'attemptsMax'> & { from?: string }) => {
    try {
      return new Grandlivre({ ...access, onWait })
    } catch (error) {
      throw inGivenWords(error, access.from)
    }
  }
  /**
   * @param name of a profile, for commands that take several
   * @throws {Failure} if there is no access
   */
  const access = (name = profile) => findAccess(env, society, name)
  /**
   * The library, with the caller's access. Its `requests` reach the routes that it has no method for.
   * @param folder for commands that have found it themselves
   * @throws {Failure} if there is no access
   */
  const ledger = (folder = access().society) => library({ ...access(), society: folder })
  return {
    ...{ ledger, library, access, tell, terminal, signal },
    /** The profile of the login file that `--profile` names. */
    profile,
    /** The folder that `--society` names. */
    society,
    /** Whether results are wanted as one JSON object a line. */
    json: json === true,
    /** Environment of the process. */
    env,
  }
}
