/** What every command of the partner's command line works with. */
import { secondsText } from '../../../terminal/src/amounts.ts'
import type { Given } from '../../../terminal/src/command.ts'
import type { Terminal } from '../../../terminal/src/terminal.ts'
import { Grandlivre } from '../client/grandlivre.ts'
import type { RequestsOptions, Wait } from '../client/requests.ts'
import { type Access, findAccess, inGivenWords, profileKind } from './access.ts'

/** Options that every command has. */
export const commonOptions = {
  profile: { value: 'name', is: profileKind, help: 'the access that login --profile kept under this name' },
  society: { value: 'id', help: 'the folder, if the token is that of a firm' },
  json: { help: 'print results, and an error on standard error, as lines of JSON' },
  quiet: { help: 'print only results and errors' },
} as const

/** The parts of the process that the command line uses. */
export interface CommandProcess {
  env: NodeJS.ProcessEnv
  terminal: Terminal
  /** Aborts on Ctrl-C, SIGTERM and SIGHUP. If the command then throws, the exit code is 130. */
  signal: AbortSignal
}

export type CommandCall = ReturnType<typeof commandCall>

/** @param printError prints an error and lets the command go on. All errors have the same form */
export function commandCall(
  given: Record<string, unknown>,
  { env, terminal: all, signal }: CommandProcess,
  printError: (error: unknown) => void,
) {
  const { json, quiet, ...chosen } = given as Given<unknown, typeof commonOptions>
  // Commands that take several profiles or folders find their accesses themselves. Here only the first one counts.
  const [profile] = [chosen.profile].flat()
  const [society] = [chosen.society].flat()
  const terminal = { ...all, ...(quiet ? { note: () => {}, progress: () => {} } : {}) }
  const onWait = ({ reason, ms }: Wait) => {
    terminal.progress(`Waiting ${secondsText(ms)}: ${reason}`)
    setTimeout(terminal.endProgress, ms).unref()
  }
  /** The library, for commands that find their access themselves. */
  const library = (access: Access & Pick<RequestsOptions, 'attemptsMax'> & { from?: string }) => {
    try {
      return new Grandlivre({ ...access, onWait })
    } catch (error) {
      throw inGivenWords(error, access.from)
    }
  }
  /**
   * @param name of a profile; for an error about one of several profiles
   * @throws {Failure} if there is no access
   */
  const access = (name = profile) => findAccess(env, society, name)
  /**
   * The library with the caller's access. Routes that have no method of their own are reached through its `requests`.
   * @param folder given by commands that find the folder themselves
   * @throws {Failure} if there is no access
   */
  const ledger = (folder = access().society) => library({ ...access(), society: folder })
  return {
    ...{ ledger, library, access, printError, terminal, signal },
    /** The profile of the login file that `--profile` names. */
    profile,
    /** The folder that `--society` names. */
    society,
    /** Whether each result is printed as a JSON object on its own line. */
    json: json === true,
    /** Environment of the process. */
    env,
  }
}
