/** The errors that commands themselves throw. Errors of the service and the network are GrandlivreErrors. */

/** The command line is wrong. The exit code is 2 for partners and 1 for staff. */
export class UsageError extends Error {
  /** Lines to print below the message: what the user may have meant. */
  readonly choices: readonly string[]

  constructor(message: string, choices: readonly string[] = []) {
    super(message)
    this.choices = choices
  }
}

/** A command failed, and the user can do something about it. */
export class Failure extends Error {
  /** What to do, in lines. */
  readonly remedy: readonly string[]
  readonly exitCode: number

  constructor(
    message: string,
    remedy: string | readonly string[] = [],
    { exitCode = 1, ...options }: ErrorOptions & { exitCode?: number } = {},
  ) {
    super(message, options)
    this.remedy = [remedy].flat()
    this.exitCode = exitCode
  }
}
