/**
 * How a command ends: the table of exit codes, which scripts branch on, and the forms of an error for people and for
 * programs. Codes 0, 1, 2, 3 and 130 keep their original meanings. Codes 4 to 7 were once part of 1; they tell failures
 * apart by what mends them: the operators (4), waiting (5), a fresh start (6), the user of this machine (7).
 */
import { Failure, UsageError } from '../../../terminal/src/command-errors.ts'
import { GrandlivreError } from '../client/errors.ts'
import { isLost } from '../client/http/connection.ts'

const unreachable = ['CONNECTION-FAILED', 'CONNECTION-LOST', 'ANSWER-LOST', 'UNEXPECTED-ANSWER']

/**
 * For each way to end: its exit code, what that means, and the codes of the library and statuses of the service that
 * lead to it. Other statuses from 400 to 499 are refusals.
 */
const endings = {
  done: [0, 'done'],
  failed: [
    1,
    'another failure: rows not proven or not copied, a fault of a receiver, an error of the service',
  ],
  usage: [2, 'wrong usage: an option, an argument or an answer', ['INVALID-OPTION']],
  differs: [3, 'verify: rows differed, and were replaced by those of the ledgers'],
  refused: [
    4,
    'the service refuses the token, its groups or a value, or finds no such thing',
    ['FILE-REFUSED'],
  ],
  unreachable: [
    5,
    'the service does not answer or is busy, or another server answers: try again later',
    [...unreachable, 429, 502, 503, 504],
  ],
  expired: [6, 'a file, a cursor or an event existed, but is gone', ['EVENTS-MISSING', 410]],
  local: [
    7,
    'this machine: no access kept, a full disk, a file or copy that is in use, exists or is not writable, a closed output',
    ['FILE-NOT-WRITTEN', 'COPY-LOCKED', 'COPY-REFUSED'],
  ],
  interrupted: [130, 'interrupted: Ctrl-C, SIGTERM, SIGHUP'],
} as const

type Ending = keyof typeof endings

const entries = Object.entries(endings) as [
  Ending,
  readonly [number, string, (readonly (string | number)[])?],
][]
export const exitCodes = Object.fromEntries(entries.map(([ending, [code]]) => [ending, code])) as Record<
  Ending,
  number
>
export const exitCodeTable = entries.map(([, [code, means]]) => [String(code), means] as const)

/** The profile that an error is about, for commands that take several profiles. */
export interface OfProfile {
  profile?: string
}

/**
 * An error as an object.
 * @returns `code`: from the service, the library or the system, or a word for the exit code such as `FAILED` or
 *   `USAGE`; `remedy`: the lines that say what to do, if any. `code` and `requestId` are null if they are not known.
 */
export function objectOf(error: unknown) {
  const { code, remedy = [], requestId } = error as Partial<GrandlivreError & NodeJS.ErrnoException>
  const { profile, message = String(error) } = error as Partial<Error & OfProfile>
  const isOurs = error instanceof UsageError || error instanceof Failure
  return {
    code: isOurs ? endingName(exitCodeOf(error)) : (code ?? null),
    message: profile === undefined ? message : `Profile ${profile}: ${message}`,
    remedy: [remedy].flat().filter(Boolean),
    requestId: requestId ?? null,
  }
}

/** The lines below the message: what to do, and the id by which the operators find the request. */
export function linesBelow({ remedy, requestId }: Pick<ErrorObject, 'remedy' | 'requestId'>): string[] {
  return [...remedy, ...(requestId === null ? [] : [`Request id: ${requestId}`])]
}

/** The object that --json prints: the remedy as one text, or null if there is none. */
export const shownOf = <Object extends Pick<ErrorObject, 'remedy'>>({ remedy, ...object }: Object) => ({
  ...object,
  remedy: remedy.join('\n') || null,
})

type ErrorObject = ReturnType<typeof objectOf>

const endingName = (code: number) => entries.find(([, [each]]) => each === code)![0].toUpperCase()

/** A failure that the user of this machine can mend. */
export const localFailure = (
  message: string,
  remedy: string | readonly string[] = [],
  options?: ErrorOptions,
) => new Failure(message, remedy, { ...options, exitCode: exitCodes.local })

/** A refusal that is no error of the service: its answers show that the token does not open what was asked for. */
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
    if (code === 'COPY-REFUSED' && isLost(error.cause)) return 'unreachable'
    const by = (cause: string | number) => entries.find(([, [, , causes]]) => causes?.includes(cause))?.[0]
    return by(code) ?? by(status) ?? (status >= 400 && status <= 499 ? 'refused' : 'failed')
  }
  // Errors of the system, of SQLite and of PostgreSQL have these members.
  const isLocal = ['syscall', 'errcode', 'severity'].some((name) => name in Object(error))
  return isLocal ? 'local' : 'failed'
}
