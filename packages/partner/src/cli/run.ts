/** The partner's command line: finds the command, runs it, and prints an error once, with what to do about it. */
import type { Program } from '../../../terminal/src/command.ts'
import { Failure, UsageError } from '../../../terminal/src/command-errors.ts'
import { printableJson } from '../../../terminal/src/printable.ts'
import type { Terminal } from '../../../terminal/src/terminal.ts'
import { readCommandLine, usageHints } from '../../../terminal/src/words.ts'
import { GrandlivreError } from '../client/errors.ts'
import { version } from '../version.ts'
import { completion, versionCommand } from './about.ts'
import { type CommandCall, type CommandProcess, commandCall, commonOptions } from './command.ts'
import { doctor } from './doctor/checks.ts'
import { webhookDoctor, webhookList } from './doctor/webhook.ts'
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
import { login, profiles } from './login.ts'
import { pull } from './pull/pull.ts'
import { folders } from './sync/folders.ts'
import { sync, verify } from './sync/sync.ts'

export const partnerProgram: Program<CommandCall> = {
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

/** @param words of the command line, such as `['pull', '--exercice', '2025']` @returns the exit code */
export async function run(words: string[], commandProcess: CommandProcess): Promise<number> {
  const { terminal, signal } = commandProcess
  const [first] = words
  if (first === '--version' || first === '-v') {
    terminal.print(version)
    return exitCodes.done
  }
  let call: CommandCall | undefined
  try {
    const read = readCommandLine(partnerProgram, words)
    if ('help' in read) {
      terminal.print(read.help)
      return read.isAsked ? exitCodes.done : exitCodes.usage
    }
    call = commandCall(read.given, commandProcess, (error) => printError(terminal, error, words, call))
    await read.command.run(call, read.given)
    return exitCodes.done
  } catch (error) {
    const remedy = error instanceof Failure ? error.remedy : []
    const ended = signal.aborted
      ? new Failure('Interrupted.', remedy, { exitCode: exitCodes.interrupted })
      : error
    printError(terminal, ended, words, call)
    return exitCodeOf(ended)
  } finally {
    terminal.endProgress()
  }
}

/**
 * Prints an error on standard error: the message, what to do, and the id by which the operators find the request. With
 * --json, the last line is one object, even if the command line could not be read.
 */
export function printError(terminal: Terminal, error: unknown, words: string[], call?: CommandCall): void {
  const { remedy: own, ...facts } = objectOf(error)
  const remedy =
    error instanceof UsageError
      ? usageHints(partnerProgram, words, error)
      : [...own, ...addressIf(error, call)]
  const whole = { ...facts, remedy }
  const first = error instanceof GrandlivreError ? `${facts.message} (${facts.code})` : facts.message
  terminal.warn(words.includes('--json') ? printableJson(shownOf(whole)) : [first, ...linesBelow(whole)])
}

/** Names the address in use if the error may come from a wrong address. */
function addressIf(error: unknown, call: CommandCall | undefined): string[] {
  const code = error instanceof GrandlivreError ? error.code : ''
  if (call === undefined || !['CONNECTION-FAILED', 'UNEXPECTED-ANSWER'].includes(code)) return []
  try {
    const { baseUrl, from } = call.access((error as OfProfile).profile)
    return [`Address: ${baseUrl}, from ${from === 'environment' ? 'the environment' : from}`]
  } catch {
    // After a failed login there may be no access whose address could be named.
    return []
  }
}
