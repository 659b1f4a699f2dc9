/**
 * How a command ends: the one table of exit codes, which scripts branch on, and an error as both people and programs
 * read it. 0, 1, 2, 3 and 130 mean what they always have; 4 to 7 tell apart failures that were 1, by who can do
 * something about them: the operators (4), time (5), a fresh start (6), the user of this machine (7).
 */
import { Failure, UsageError } from '../../../terminal/src/command-errors.ts'
import { GrandlivreError } from '../client/errors.ts'

export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  differs: 3,
  refused: 4,
  unreachable: 5,
  expired: 6,
  local: 7,
  interrupted: 130,
} as const

type Ending = keyof typeof exitCodes

const meanings: Readonly<Record<Ending, string>> = {
  done: 'done',
  failed:
    'another failure: rows not proven or not copied, a fault of a receiver, an error of the service or of this program',
  usage: 'wrong usage: an option, an argument or an answer',
  differs: 'verify: rows differed, and are those of the ledgers now',
  refused: 'the service refuses it: the token, its groups, a value, or there is no such thing',
  unreachable: 'the service does not answer, is busy, or is not what answers: try again later',
  expired: 'what was asked for existed, and is gone: a file, a cursor, an event',
  local:
    'this machine: no access kept, a full disk, a file or copy that is in use, there already or not writable, a closed output',
  interrupted: 'interrupted: Ctrl-C, SIGTERM, SIGHUP',
}

export const exitCodeTable = Object.entries(exitCodes).map(
  ([ending, code]) => [String(code), meanings[ending as Ending]] as const,
)

/**
 * An error as an object.
 * @returns `code` of the service, the library or the system; `FAILED`, `USAGE` ... of the command, by its exit code.
 *   Null: not known. `remedy`: what to do, in lines
 */
export function objectOf(error: unknown) {
  const { code, message, remedy = [], requestId } = error as Partial<GrandlivreError & NodeJS.ErrnoException>
  const isOurs = error instanceof UsageError || error instanceof Failure
  return {
    code: isOurs ? nameOf(exitCodeOf(error)) : (code ?? null),
    message: message ?? String(error),
    remedy: [remedy].flat().filter(Boolean),
    requestId: requestId ?? null,
  }
}

const nameOf = (code: number) =>
  Object.entries(exitCodes)
    .find(([, each]) => each === code)![0]
    .toUpperCase()

/** Codes of the library. Those of the service say it by their status. */
const endingsOfLibrary: Readonly<Record<string, Ending>> = {
  'INVALID-OPTION': 'usage',
  'CONNECTION-FAILED': 'unreachable',
  'CONNECTION-LOST': 'unreachable',
  'ANSWER-LOST': 'unreachable',
  'UNEXPECTED-ANSWER': 'unreachable',
  'FILE-REFUSED': 'refused',
  'EVENTS-MISSING': 'expired',
  'FILE-NOT-WRITTEN': 'local',
  'COPY-LOCKED': 'local',
  'COPY-REFUSED': 'local',
}

const endingsByStatus: Readonly<Record<number, Ending>> = {
  410: 'expired',
  429: 'unreachable',
  502: 'unreachable',
  503: 'unreachable',
  504: 'unreachable',
}

/** The user of this machine can do something about it. */
export const localFailure = (
  message: string,
  remedy: string | readonly string[] = [],
  options?: ErrorOptions,
) => new Failure(message, remedy, { ...options, exitCode: exitCodes.local })

/** The command itself knows that the service has no such thing for this token. */
export const refusedFailure = (message: string, remedy: readonly string[] = []) =>
  new Failure(message, remedy, { exitCode: exitCodes.refused })

export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return exitCodes.usage
  if (error instanceof Failure) return error.exitCode
  return exitCodes[endingOf(error)]
}

function endingOf(error: unknown): Ending {
  if (error instanceof GrandlivreError) {
    const { code, status } = error
    const known = endingsOfLibrary[code] ?? endingsByStatus[status]
    return known ?? (status >= 400 && status <= 499 ? 'refused' : 'failed')
  }
  // Errors of the system, of SQLite and of PostgreSQL.
  const isLocal = ['syscall', 'errcode', 'severity'].some((name) => name in Object(error))
  return isLocal ? 'local' : 'failed'
}
