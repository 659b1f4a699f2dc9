/** The partner's command line: finds the command, runs it, and prints an error once, with what to do about it. */

import { secondsText } from '../../../terminal/src/amounts.ts'
import { Failure, UsageError } from '../../../terminal/src/command-errors.ts'
import type { Terminal } from '../../../terminal/src/terminal.ts'
import { GrandlivreError } from '../client/errors.ts'
import { Grandlivre } from '../client/grandlivre.ts'
import { version } from '../version.ts'
import { findAccess } from './access.ts'
import { findCommand, parseWords } from './arguments.ts'
import { type Call, type Command, textOf } from './command.ts'
import { webhookDoctor } from './doctor/doctor.ts'
import { webhookList } from './doctor/list.ts'
import { listen } from './listen/listen.ts'
import { login } from './login/login.ts'
import { logout } from './login/logout.ts'
import { whoami } from './login/whoami.ts'
import { pull } from './pull/pull.ts'
import { sync } from './sync/sync.ts'
import { verify } from './sync/verify.ts'

/** In the order of the help. */
export const commands: Command[] = [
  login,
  logout,
  whoami,
  pull,
  sync,
  verify,
  listen,
  webhookList,
  webhookDoctor,
]

export interface Surroundings {
  env: NodeJS.ProcessEnv
  terminal: Terminal
  /** Aborts on Ctrl-C and SIGTERM. */
  signal: AbortSignal
}

const exitCodes = { done: 0, failed: 1, wrongUsage: 2, interrupted: 130 }

const commonUsage = `
Every command also takes:
  --society <id>  the folder, where the token is one of a firm
  --json          print each result as one line of JSON
  --help          show this help
`

/** @param words of the command line, such as `['pull', '--exercice', '2025']` @returns the exit code */
export async function run(words: string[], surroundings: Surroundings): Promise<number> {
  const { env, terminal, signal } = surroundings
  const [first] = words
  if (first === '--version' || first === '-v') {
    terminal.print(version)
    return exitCodes.done
  }
  if (first === undefined || first === '--help' || first === '-h' || first === 'help') {
    for (const line of overview()) terminal.print(line)
    return first === undefined ? exitCodes.wrongUsage : exitCodes.done
  }
  try {
    await runCommand(words, surroundings)
    return exitCodes.done
  } catch (error) {
    if (signal.aborted) {
      terminal.note(['Interrupted.', ...(error instanceof Failure ? error.remedy : [])].join(' '))
      return exitCodes.interrupted
    }
    for (const line of linesOf(error, words, env)) terminal.note(line)
    return error instanceof UsageError ? exitCodes.wrongUsage : exitCodes.failed
  } finally {
    terminal.endProgress()
  }
}

async function runCommand(words: string[], { env, terminal, signal }: Surroundings): Promise<void> {
  const { command, rest } = findCommand(words, commands)
  const { values, positionals } = parseWords(command, rest)
  if (values['help']) {
    const usage = `${command.usage.trim()}\n${commonUsage.trimEnd()}`
    for (const line of usage.split('\n')) terminal.print(line)
    return
  }
  const access = () => findAccess(env, textOf(values, 'society'))
  const call: Call = {
    values,
    positionals,
    access,
    ledger: (society = access().society) =>
      new Grandlivre({
        ...access(),
        society,
        onWait: ({ reason, ms }) => terminal.progress(`Waiting ${secondsText(ms)}: ${reason}`),
      }),
    terminal,
    signal,
    json: values['json'] === true,
    env,
  }
  await command.run(call)
}

function overview(): string[] {
  const width = Math.max(...commands.map(({ name }) => name.length))
  return [
    'Usage: grandlivre <command> [options]',
    '',
    'Pulls ledgers out of Grandlivre, verified to the last byte.',
    '',
    'Commands:',
    ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    'grandlivre <command> --help shows the options of a command.',
    'Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.',
  ]
}

/** The message, what to do, and the id by which the operators find the request. */
function linesOf(error: unknown, words: string[], env: NodeJS.ProcessEnv): string[] {
  if (error instanceof UsageError) return [error.message, ...error.choices, ...hintOf(words)]
  if (error instanceof Failure) return [error.message, ...error.remedy]
  if (error instanceof GrandlivreError)
    return [
      `${error.message} (${error.code})`,
      ...(error.remedy ? [error.remedy] : []),
      ...addressIf(error, env),
      ...(error.requestId ? [`Request id: ${error.requestId}`] : []),
    ]
  return [error instanceof Error ? error.message : String(error)]
}

/** The address in use, where it may be the wrong one. */
function addressIf({ code }: GrandlivreError, env: NodeJS.ProcessEnv): string[] {
  if (code !== 'CONNECTION-FAILED' && code !== 'UNEXPECTED-ANSWER') return []
  try {
    const { baseUrl, from } = findAccess(env)
    return [`Address: ${baseUrl}, from ${from === 'environment' ? 'the environment' : from}`]
  } catch {
    // Given to login as an option.
    return []
  }
}

/** Where to read on, if the words name a command. */
function hintOf(words: string[]): string[] {
  const name = commands
    .map((command) => command.name)
    .find((known) => `${words.join(' ')} `.startsWith(`${known} `))
  return name === undefined ? [] : [`grandlivre ${name} --help shows its options.`]
}
