/** The only error class of the library. Each error says what to do about it. */
import { errorCodes, type Issue } from '../../../contract/src/error-codes.ts'

export type { Issue }

/** The client's own codes, with what to do. All other codes come from the service (docs/errors.md). */
const clientErrors = {
  'INVALID-OPTION': 'Correct the option that the message names.',
  'CONNECTION-FAILED':
    'Check the address, and that the service can be reached from this machine. Then try again.',
  'ANSWER-LOST':
    'The service may have done what was asked. Look before you ask again: the subscription may be there, for example.',
  'CONNECTION-LOST': 'Try again. What was received in whole lines can be kept: go on with `resume`.',
  'LEDGER-CHANGED': 'Discard what was received and begin again, or pass `onRestart` to have it done.',
  'NOT-PROVEN':
    'Discard what was received and begin again. If it happens again, report it with the request id.',
  'UNEXPECTED-ANSWER': 'Check the address: what answers there does not seem to be the service itself.',
  'ANSWER-TOO-LONG':
    'In a program, pass the client a larger `wholeBytesMax`. A command has no such option: report the error with the ' +
    'request id.',
  'EXPORT-FAILED':
    'The message says why, and when the same parameters start a new export. Change what it names first.',
  'FILE-DIFFERS': 'Download it again. If it happens again, report it with the id of the export.',
  'FILE-REFUSED':
    'Start a new export. If its file is refused as well, report it to the operators with the id of the export.',
  'FILE-NOT-WRITTEN':
    'Free space, or choose another name for the file. The same download then goes on where it stopped.',
  'EVENTS-MISSING':
    'They may have been erased with their folder. Otherwise read from the ledger what they were about. Then go on with ' +
    '`after` set to the last missing number, or pass `onGap`: it is called instead, and reading goes on.',
  'COPY-LOCKED': 'Wait for the end of the other sync or verify, or stop it.',
  'COPY-REFUSED': 'Correct what the message names, or choose another place for the copy.',
} as const

export type ClientErrorCode = keyof typeof clientErrors

export interface GrandlivreErrorOptions {
  /** HTTP status; 0 if there was no answer. */
  status?: number | undefined
  requestId?: string | undefined
  issues?: Issue[] | undefined
  details?: Record<string, unknown> | undefined
  /** Milliseconds for which the service asks the client to wait. */
  retryAfterMs?: number | undefined
  /** What to do, if it differs from the usual remedy of the code. */
  remedy?: string | undefined
  cause?: unknown
}

/** The class of every error of the library. Only the reason of an AbortSignal is thrown as it is. */
export class GrandlivreError extends Error {
  /**
   * A code of the service (`ERR-...`, docs/errors.md) or of the client. Programs should compare it and not the message.
   */
  readonly code: string
  /** HTTP status of the answer; 0 if there was none. */
  readonly status: number
  /** The id by which the logs of the service name the request. */
  readonly requestId: string | undefined
  /** Each parameter, header or field that the service refused, and why. */
  readonly issues: readonly Issue[]
  /** Further facts that the service gave, such as `oldest`. */
  readonly details: Readonly<Record<string, unknown>>
  /** Milliseconds for which the service asked the client to wait before the next request. */
  readonly retryAfterMs: number | undefined
  /** What to do, in a sentence or two. */
  readonly remedy: string

  constructor(code: string, message: string, options: GrandlivreErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.name = 'GrandlivreError'
    this.code = code
    this.status = options.status ?? 0
    this.requestId = options.requestId
    this.issues = options.issues ?? []
    this.details = options.details ?? {}
    this.retryAfterMs = options.retryAfterMs
    this.remedy = options.remedy ?? remedyOf(code)
  }
}

function remedyOf(code: string): string {
  if (Object.hasOwn(clientErrors, code)) return clientErrors[code as ClientErrorCode]
  if (Object.hasOwn(errorCodes, code)) return errorCodes[code as keyof typeof errorCodes].remedy
  return 'This version of the client does not know the code: see the documentation of the service.'
}

export function clientError(code: ClientErrorCode, message: string, options: GrandlivreErrorOptions = {}) {
  return new GrandlivreError(code, message, options)
}

/**
 * Makes an error of a refusal by the service.
 * @param text the body, as far as it was read
 */
export function refusalOf(
  text: string,
  request: string,
  facts: Pick<GrandlivreErrorOptions, 'status' | 'requestId' | 'retryAfterMs'>,
): GrandlivreError {
  const { code, message, details } = errorIn(text)
  if (typeof code !== 'string' || typeof message !== 'string')
    return clientError(
      'UNEXPECTED-ANSWER',
      `${request} was answered with status ${facts.status} and no error code`,
      facts,
    )
  const given = details?.['issues']
  const issues = (Array.isArray(given) ? given : []).filter(
    (issue: Partial<Issue> | null) => issue?.parameter,
  ) as Issue[]
  const named = issues.map((issue) => `${issue.parameter}: ${issue.message}`).join('; ')
  const full = named === '' ? message : `${message}: ${named}`
  return new GrandlivreError(code, full, { issues, details, ...facts })
}

function errorIn(text: string): { code?: unknown; message?: unknown; details?: Record<string, unknown> } {
  try {
    return JSON.parse(text)?.error ?? {}
  } catch {
    return {}
  }
}
