/** The partner's command line: finds the command, runs it, and prints an error once, with what to do about it. */

import { secondsText } from '../../../terminal/src/amounts.ts'
import type { Given, Program } from '../../../terminal/src/command.ts'
import { Failure, UsageError } from '../../../terminal/src/command-errors.ts'
import type { Terminal } from '../../../terminal/src/terminal.ts'
import { readCommandLine, usageLines } from '../../../terminal/src/words.ts'
import { GrandlivreError } from '../client/errors.ts'
import { Grandlivre } from '../client/grandlivre.ts'
import { version } from '../version.ts'
import { type Access, findAccess, profileKind } from './access.ts'
import type { Call } from './command.ts'
import { webhookDoctor } from './doctor/doctor.ts'
import { webhookList } from './doctor/list.ts'
import { listen } from './listen/listen.ts'
import { login } from './login/login.ts'
import { logout } from './login/logout.ts'
import { whoami } from './login/whoami.ts'
import { pull } from './pull/pull.ts'
import { folders } from './sync/folders.ts'
import { sync } from './sync/sync.ts'
import { verify } from './sync/verify.ts'

const commonOptions = {
  profile: { value: 'name', is: profileKind, help: 'the access that login --profile kept under this name' },
  society: { value: 'id', help: 'the folder, where the token is one of a firm' },
  json: { help: 'print each result as one line of JSON' },
} as const

export const partnerProgram: Program<Call> = {
  call: 'grandlivre',
  about: 'Pulls ledgers out of Grandlivre, verified to the last byte.',
  groups: { webhook: 'Subscriptions to events, and their receivers.' },
  commands: [login, logout, whoami, folders, pull, sync, verify, listen, webhookList, webhookDoctor],
  options: commonOptions,
  exitCodes: 'Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.',
}

export interface Surroundings {
  env: NodeJS.ProcessEnv
  terminal: Terminal
  /** Aborts on Ctrl-C and SIGTERM. */
  signal: AbortSignal
}

const exitCodes = { done: 0, failed: 1, wrongUsage: 2, interrupted: 130 }

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
      return read.isAsked ? exitCodes.done : exitCodes.wrongUsage
    }
    call = callOf(read.given, surroundings)
    await read.command.run(call, read.given)
    return exitCodes.done
  } catch (error) {
    if (signal.aborted) {
      terminal.note(['Interrupted.', ...(error instanceof Failure ? error.remedy : [])].join(' '))
      return exitCodes.interrupted
    }
    terminal.note(linesOf(error, words, call))
    if (error instanceof UsageError) return exitCodes.wrongUsage
    return error instanceof Failure ? error.exitCode : exitCodes.failed
  } finally {
    terminal.endProgress()
  }
}

function callOf(given: Record<string, unknown>, { env, terminal, signal }: Surroundings): Call {
  // Commands that take several find their accesses themselves: here the first stands for all.
  const [profile, society] = [given['profile'], given['society']].map((each) => [each].flat()[0])
  const chosen = { ...given, profile, society } as Given<unknown, typeof commonOptions>
  const access = () => findAccess(env, chosen.society, chosen.profile)
  const library = (found: Access) =>
    new Grandlivre({
      ...found,
      onWait: ({ reason, ms }) => terminal.progress(`Waiting ${secondsText(ms)}: ${reason}`),
    })
  return {
    ...{ access, library },
    ...(chosen.profile === undefined ? {} : { profile: chosen.profile }),
    ...(chosen.society === undefined ? {} : { society: chosen.society }),
    ledger: (society = access().society) =>
      library({ ...access(), ...(society === undefined ? {} : { society }) }),
    terminal,
    signal,
    json: chosen.json === true,
    env,
  }
}

/** The message, what to do, and the id by which the operators find the request. */
function linesOf(error: unknown, words: string[], call: Call | undefined): string[] {
  if (error instanceof UsageError) return usageLines(partnerProgram, words, error)
  if (error instanceof Failure) return [error.message, ...error.remedy]
  if (error instanceof GrandlivreError)
    return [
      `${error.message} (${error.code})`,
      ...(error.remedy ? [error.remedy] : []),
      ...addressIf(error, call),
      ...(error.requestId ? [`Request id: ${error.requestId}`] : []),
    ]
  return [error instanceof Error ? error.message : String(error)]
}

/** The address in use, where it may be the wrong one. */
function addressIf({ code }: GrandlivreError, call: Call | undefined): string[] {
  if (call === undefined || (code !== 'CONNECTION-FAILED' && code !== 'UNEXPECTED-ANSWER')) return []
  try {
    const { baseUrl, from } = call.access()
    return [`Address: ${baseUrl}, from ${from === 'environment' ? 'the environment' : from}`]
  } catch {
    // Given to login as an option.
    return []
  }
}
