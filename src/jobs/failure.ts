/** What went wrong with an attempt, and whether another one may go better. Plain: it crosses from thread to thread. */
import { AssertionError } from 'node:assert'
import { inspect } from 'node:util'
import { isConnectionLoss } from '../db/outage.ts'
import { AppError } from '../errors.ts'
import { UnsupportedByFormat } from '../formats/unsupported.ts'
import { StoreError } from '../store/store.ts'
import type { FailureCause } from './job.ts'

export interface Failure {
  cause: FailureCause
  retryable: boolean
  /** For the caller: what it is about its own books. */
  told: string | undefined
  /** For the log alone. */
  message: string
  /** With its causes. */
  stack: string
}

/**
 * No retry mends a folder that is gone or holds what the file cannot, a store that refuses, and a mistake of ours,
 * which the same rows lead to again. Whatever is not known to be of that kind is tried again: a database that is
 * away, short of something or cancelled the query; a thread that ended.
 */
export function failureOf(error: unknown): Failure {
  const known = error instanceof Error ? error : new Error(String(error))
  const told = known instanceof UnsupportedByFormat ? known.message : undefined
  return { ...judge(known), told, message: known.message, stack: inspect(known) }
}

function judge(error: Error): Pick<Failure, 'cause' | 'retryable'> {
  if (error instanceof StoreError)
    return { cause: error.retryable ? 'store' : 'refused', retryable: error.retryable }
  if (error instanceof AppError && error.code === 'ERR-FOLDER-NOT-FOUND')
    return { cause: 'folder', retryable: false }
  if (error instanceof UnsupportedByFormat) return { cause: 'unfit', retryable: false }
  if (isConnectionLoss(error) || (error instanceof AppError && error.code === 'ERR-UNAVAILABLE'))
    return { cause: 'database', retryable: true }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  // SQLSTATE classes: 40 a conflict with others, 53 no room, 55 an object in use, 57 stopped by an operator, 58 the
  // machine. Any other says that the statement is wrong.
  if (/^[0-9A-Z]{5}$/.test(code)) {
    const passing = /^(40|53|55|57|58)/.test(code)
    return { cause: passing ? 'database' : 'internal', retryable: passing }
  }
  const ours = [AssertionError, TypeError, RangeError, ReferenceError, SyntaxError, AppError]
  return { cause: 'internal', retryable: !ours.some((kind) => error instanceof kind) }
}
