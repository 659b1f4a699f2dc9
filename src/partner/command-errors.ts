/** The errors that commands throw. Errors of the service and the network are GrandlivreErrors. */

/** The command line is wrong: exit code 2. */
export class UsageError extends Error {}

/** A command failed, and the user can do something about it: exit code 1. */
export class Failure extends Error {
  /** What to do. */
  readonly remedy: string | undefined

  constructor(message: string, remedy?: string, options?: ErrorOptions) {
    super(message, options)
    this.remedy = remedy
  }
}
