/** The partner's command line: finds the command, runs it, and prints an error once, with what to do about it. */

import { secondsText } from '../../../terminal/src/amounts.ts'
import type { Given, Program } from '../../../terminal/src/command.ts'
import { Failure, UsageError } from '../../../terminal/src/command-errors.ts'
import { printableJson } from '../../../terminal/src/printable.ts'
import type { Terminal } from '../../../terminal/src/terminal.ts'
import { readCommandLine, usageHints } from '../../../terminal/src/words.ts'
import { GrandlivreError } from '../client/errors.ts'
import { Grandlivre } from '../client/grandlivre.ts'
import type { Wait } from '../client/requests.ts'
import { version } from '../version.ts'
import { completion } from './about/completion.ts'
import { versionCommand } from './about/version.ts'
import { type Access, findAccess, inGivenWords, profileKind } from './access.ts'
import type { Call } from './command.ts'
import { doctor } from './doctor/checks.ts'
import { webhookDoctor } from './doctor/doctor.ts'
import { webhookList } from './doctor/list.ts'
import {
  exitCodeOf,
  exitCodes,
  exitCodeTable,
  linesBelow,
  type OfProfile,
  objectOf,
  shownOf,
} from './exit-codes.ts'
import { listen } from './listen/listen.ts'
import { login } from './login/login.ts'
import { profiles } from './login/profiles.ts'
import { pull } from './pull/pull.ts'
import { folders } from './sync/folders.ts'
import { sync } from './sync/sync.ts'
import { verify } from './sync/verify.ts'

const commonOptions = {
  profile: { value: 'name', is: profileKind, help: 'the access that login --profile kept under this name' },
  society: { value: 'id', help: 'the folder, where the token is one of a firm' },
  json: { help: 'print results, and an error on standard error, as lines of JSON' },
  quiet: { help: 'print results and errors alone, and not what happens meanwhile' },
} as const

export const partnerProgram: Program<Call> = {
  call: 'grandlivre',
  about: 'Pulls ledgers out of Grandlivre, verified to the last byte.',
  groups: { webhook: 'Subscriptions to events, and their receivers.' },
  commands: [
    ...[login, ...profiles, doctor, folders, pull, sync, verify, listen, webhookList, webhookDoctor],
    ...[completion(() => partnerProgram), versionCommand],
  ],
  options: commonOptions,
  exitCodes: exitCodeTable,
}

export interface Surroundings {
  env: NodeJS.ProcessEnv
  terminal: Terminal
  /** Aborts on Ctrl-C and SIGTERM. */
  signal: AbortSignal
}

/** @param words of the command line, such as `['pull', '--exercice', '2025']` @returns the exit code */
export async function run(words: string[], surroundings: Surroundings): Promise<number> {
  const { terminal, signal } = surroundings
  const [first] = words
  if (first === '--version' || first === '-v') {
    terminal.print(version)
    return exitCodes.done
  }
  let call: Call | undefined
  try {
    const read = readCommandLine(partnerProgram, words)
    if ('help' in read) {
      terminal.print(read.help)
      return read.isAsked ? exitCodes.done : exitCodes.usage
    }
    call = callOf(read.given, surroundings, words)
    await read.command.run(call, read.given)
    return exitCodes.done
  } catch (error) {
    const remedy = error instanceof Failure ? error.remedy : []
    const ended = signal.aborted
      ? new Failure('Interrupted.', remedy, { exitCode: exitCodes.interrupted })
      : error
    tell(terminal, ended, words, call)
    return exitCodeOf(ended)
  } finally {
    terminal.endProgress()
  }
}

/**
 * On standard error: the message, what to do, and the id by which the operators find the request; with --json, also where
 * the command line could not be read, one object as the last line.
 */
export function tell(terminal: Terminal, error: unknown, words: string[], call?: Call): void {
  const { remedy: own, ...told } = objectOf(error)
  const remedy =
    error instanceof UsageError
      ? usageHints(partnerProgram, words, error)
      : [...own, ...addressIf(error, call)]
  const whole = { ...told, remedy }
  const first = error instanceof GrandlivreError ? `${told.message} (${told.code})` : told.message
  terminal.warn(words.includes('--json') ? printableJson(shownOf(whole)) : [first, ...linesBelow(whole)])
}

function callOf(
  given: Record<string, unknown>,
  { env, signal, ...surroundings }: Surroundings,
  words: string[],
): Call {
  // Commands that take several find their accesses themselves: here the first stands for all.
  const [profile, society] = [given['profile'], given['society']].map((each) => [each].flat()[0])
  const chosen = { ...given, profile, society } as Given<unknown, typeof commonOptions>
  const silent = { note: () => {}, progress: () => {} }
  const terminal = { ...surroundings.terminal, ...(chosen.quiet ? silent : {}) }
  const access = (name = chosen.profile) => findAccess(env, chosen.society, name)
  const onWait = ({ reason, ms }: Wait) => {
    terminal.progress(`Waiting ${secondsText(ms)}: ${reason}`)
    setTimeout(terminal.endProgress, ms).unref()
  }
  const library = (found: Access & { from?: string }) => {
    try {
      return new Grandlivre({ ...found, onWait })
    } catch (error) {
      throw inGivenWords(error, found.from)
    }
  }
  const call: Call = {
    ...{ access, library, tell: (error) => tell(terminal, error, words, call) },
    ...(chosen.profile === undefined ? {} : { profile: chosen.profile }),
    ...(chosen.society === undefined ? {} : { society: chosen.society }),
    ledger: (society = access().society) =>
      library({ ...access(), ...(society === undefined ? {} : { society }) }),
    terminal,
    signal,
    json: chosen.json === true,
    env,
  }
  return call
}

/** The address in use, where it may be the wrong one. */
function addressIf(error: unknown, call: Call | undefined): string[] {
  const code = error instanceof GrandlivreError ? error.code : ''
  if (call === undefined || !['CONNECTION-FAILED', 'UNEXPECTED-ANSWER'].includes(code)) return []
  try {
    const { baseUrl, from } = call.access((error as OfProfile).profile)
    return [`Address: ${baseUrl}, from ${from === 'environment' ? 'the environment' : from}`]
  } catch {
    // Given to login.
    return []
  }
}
