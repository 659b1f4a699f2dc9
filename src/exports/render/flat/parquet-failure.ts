/**
 * The process failed. `retryable`: it ended without a word, as when the system was short of memory. Otherwise the
 * message is DuckDB's, which would say the same again.
 */
export class ParquetFailure extends Error {
  override name = 'ParquetFailure'
  readonly retryable: boolean

  constructor(message: string, retryable: boolean) {
    super(message)
    this.retryable = retryable
  }
}
