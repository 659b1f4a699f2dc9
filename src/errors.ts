/** The error that the service throws for its callers. */
import {
  type ErrorCode,
  type ErrorStatus,
  errorCodes,
  type Issue,
} from '../packages/contract/src/error-codes.ts'

interface AppErrorOptions {
  /** Message for the caller, without secrets, SQL or stack; by default the one in the table of errors. */
  message?: string
  issues?: Issue[] | undefined
  /** Resources that the caller has to choose from. */
  producerIds?: string[] | undefined
  /** Number of the oldest event that is kept. */
  oldest?: string | undefined
  /** Response headers that the status requires: `Retry-After`, `Allow`. */
  headers?: Record<string, string>
  /** The missing dependency by its name in /readyz, if it is known. */
  missing?: string | undefined
  cause?: unknown
}

/**
 * An error that the caller or the environment caused. Bugs of the service are assertions, which callers see as
 * ERR-INTERNAL.
 */
export class AppError extends Error {
  readonly code: ErrorCode
  readonly issues: Issue[] | undefined
  readonly producerIds: string[] | undefined
  readonly oldest: string | undefined
  readonly headers: Record<string, string>
  readonly missing: string | undefined

  constructor(code: ErrorCode, options: AppErrorOptions = {}) {
    const { message = errorCodes[code].message, cause } = options
    super(message, cause === undefined ? {} : { cause })
    this.name = 'AppError'
    this.code = code
    this.issues = options.issues
    this.producerIds = options.producerIds
    this.oldest = options.oldest
    this.headers = options.headers ?? {}
    this.missing = options.missing
  }

  get status(): ErrorStatus {
    return errorCodes[this.code].status
  }
}

/** 400 ERR-VALIDATION about one parameter. */
export function invalid(parameter: string, message: string): AppError {
  return new AppError('ERR-VALIDATION', { issues: [{ parameter, message }] })
}
