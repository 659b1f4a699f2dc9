/** Why an attempt failed, and whether a retry may succeed. A plain object, because it is posted between threads. */
import { AssertionError } from 'node:assert'
import { inspect } from 'node:util'
import { isAway, mayPass } from '../db/outage.ts'
import { AppError } from '../errors.ts'
import { ParquetFailure, UnsupportedByFormat } from '../formats/file-formats.ts'
import { StoreError } from '../store/store.ts'
import type { FailureCause } from './job.ts'

export interface Failure {
  cause: FailureCause
  retryable: boolean
  /**
   * Whether the database was unreachable or another server was promoted. That is no fault of the export, so it uses up
   * no attempt.
   */
  isAway: boolean
  /** What in the books caused the failure, for the caller; undefined if it was something else. */
  detail: string | undefined
  /** For the log only. */
  message: string
  /** Stack traces of the error and of its causes. */
  stack: string
}

/**
 * Describes an error. A retry cannot help if the folder was deleted or does not fit the format, if the store refuses,
 * or if there is a bug: the same rows would trigger it again. Every other error is retried: the database was
 * unreachable, short of a resource or cancelled the query, or the thread died.
 */
export function failureOf(error: unknown): Failure {
  const known = error instanceof Error ? error : new Error(String(error))
  const detail = known instanceof UnsupportedByFormat ? known.message : undefined
  return { ...judge(known), isAway: isAway(known), detail, message: known.message, stack: inspect(known) }
}

function judge(error: Error): Pick<Failure, 'cause' | 'retryable'> {
  if (error instanceof StoreError)
    return { cause: error.retryable ? 'store' : 'refused', retryable: error.retryable }
  if (error instanceof AppError && error.code === 'ERR-FOLDER-NOT-FOUND')
    return { cause: 'folder', retryable: false }
  if (error instanceof UnsupportedByFormat) return { cause: 'unsupported', retryable: false }
  if (error instanceof ParquetFailure) return { cause: 'parquet', retryable: error.retryable }
  if (isAway(error)) return { cause: 'database', retryable: true }
  const passing = mayPass(error)
  if (passing !== undefined) return { cause: passing ? 'database' : 'internal', retryable: passing }
  const ours = [AssertionError, TypeError, RangeError, ReferenceError, SyntaxError, AppError]
  return { cause: 'internal', retryable: !ours.some((kind) => error instanceof kind) }
}
